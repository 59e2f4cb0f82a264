"""What `mkdocs build` runs to make the site: pages of the API, equations, tutorials; and the drawings of its pages."""
