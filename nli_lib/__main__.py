"""`python -m nli_lib`: `nli-study` without the commands for a user's corpus, which `nli_tools` adds."""

from nli_lib.study.cli import main

main()
