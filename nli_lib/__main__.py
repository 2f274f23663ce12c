"""`python -m nli_lib` is `nli-study` without the commands for a corpus of one's own, which `nli_tools` adds."""

from nli_lib.study.cli import main

main()
