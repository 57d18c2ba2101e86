"""`python -m fedbits` says what the package has. The command line is a program of its own, which CMake builds."""
import sys

import fedbits

ABOUT = f"""fedbits {fedbits.__version__}: federated learning simulated with exact bits

    {len(fedbits.compressors())} compressors       fedbits.compressors() lists them, help(fedbits.TopK) explains one
    {len(fedbits.feedbacks())} feedback methods  fedbits.feedbacks() lists them, help(fedbits.EF21) explains one
    studies              fedbits.run("study.toml"), fedbits.sweep, fedbits.plan, fedbits.suggest, fedbits.check

help(fedbits) begins with an example. The command line (`fedbits run study.toml`) is another program: ./quickstart.sh builds it in a clone.
"""


def main(arguments: list[str]) -> int:
    if arguments and arguments[0] not in ("--help", "-h", "--version"):
        print(f"python -m fedbits has no command {arguments[0]!r}. In Python, fedbits.run, sweep, plan, suggest and check do what the commands of the program "
              "`fedbits` do.", file=sys.stderr)
        return 2
    info = fedbits.build_info()
    built = f"built for {info['level']} with {info['compiler']}"
    print(f"{ABOUT.splitlines()[0]}\n{built}" if arguments[:1] == ["--version"] else ABOUT.rstrip())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
