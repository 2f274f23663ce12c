"""`python -m nli_lib` is `nli-study`."""

from nli_lib.cli import main

main()
