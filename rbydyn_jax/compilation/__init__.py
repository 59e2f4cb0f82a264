"""Control of compilation: ahead of time, cached, exported, and forbidden where it must not happen."""
