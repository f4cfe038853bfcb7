"""Terms and structures as SVG.

``picture`` draws a term with its nesting (Jupyter shows it), ``term_stages`` the accessed places after each rewriting,
``memory`` the first bytes of a structure before and after.
"""
