"""What `mlflow run . -e compare` is made of: gathering runs, working out exhibits, laying them out.

`gathering` finds and checks the runs, `cells` puts them side by side, a module a subject turns
them into exhibits, and `document` writes those as HTML, CSV, LaTeX and Markdown.
"""
