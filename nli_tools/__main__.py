"""`python -m nli_tools`: the same as `nli-study`."""

from nli_tools.commands import main

main()
