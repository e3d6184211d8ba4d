"""One process of `softcr search-surrogate`."""

import sys

from softcr_models.errors import UserError
from softcr_runtime.console import USER_ERROR, complain
from softcr_tools.surrogate.search import main

if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except UserError as error:
        complain(str(error))
        sys.exit(USER_ERROR)
