"""The RB-Y1: its SDK's dynamics, commands, controller, motion generator and mobile base."""
