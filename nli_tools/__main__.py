"""`python -m nli_tools` is `nli-study`."""

from nli_tools.commands import main

main()
