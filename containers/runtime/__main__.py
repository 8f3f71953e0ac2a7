"""`python -m containers.runtime`."""

import sys

from containers.runtime.serve import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
