"""`python -m nli_lib` is `nli-study`."""

from nli_lib.study.cli import main

main()
