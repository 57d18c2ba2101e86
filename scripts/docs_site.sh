#!/usr/bin/env bash
# Makes a site of the documents, with search, from the Markdown of the repository. It loads nothing from the network and works from its folder.
#
#   scripts/docs_site.sh [OUT]      OUT: a folder for the site, by default build-docs/site; open its index.html
#
# The tools come from PyPI, in the versions of scripts/docs_site/requirements.txt, and lie in build-docs/environment, or where FEDBITS_DOCS_ENV says.
# A link or an anchor that leads nowhere ends the script with exit code 1, tools that cannot be installed with 3. Needs Python 3.11 or later with venv.
set -euo pipefail

case ${1:-} in
  -h | --help)
    sed -n '2,/^set /{/^set /!p}' "${BASH_SOURCE[0]}" | sed 's/^# \?//'
    exit 0
    ;;
  -*) echo "usage: scripts/docs_site.sh [OUT]" >&2; exit 2 ;;
esac
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out=$(realpath -m "${1:-$source/build-docs/site}")
environment=$(realpath -m "${FEDBITS_DOCS_ENV:-$source/build-docs/environment}")
requirements=$source/scripts/docs_site/requirements.txt
[ ! -e "$out" ] || [ -e "$out/.buildinfo" ] || [ -z "$(ls -A "$out")" ] || { echo "docs_site.sh: $out holds something else than a site" >&2; exit 2; }

if ! cmp -s "$requirements" "$environment/requirements.txt"; then
  python3 -m venv --clear "$environment" || { echo "docs_site.sh: no environment of Python could be made; scripts/packages.sh python installs what it needs" >&2; exit 3; }
  "$environment/bin/python" -m pip install --quiet --disable-pip-version-check --retries 1 --only-binary :all: --requirement "$requirements" ||
    { echo "docs_site.sh: the tools could not be installed from PyPI" >&2; exit 3; }
  cp "$requirements" "$environment"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export FEDBITS_SOURCE=$source PYTHONDONTWRITEBYTECODE=1
"$environment/bin/python" "$source/scripts/docs_site/stage.py" "$source" "$work/pages"
rm -rf "$out"
status=0
"$environment/bin/python" -m sphinx -b html -j auto -q --fail-on-warning --keep-going -c "$source/scripts/docs_site" -d "$work/doctrees" \
  "$work/pages" "$out" 2>"$work/warnings.txt" || status=$?
sed "s#$work/pages/##" "$work/warnings.txt" >&2
[ "$status" -eq 0 ] || { echo "docs_site.sh: the site has faults, which are named above" >&2; exit 1; }
echo "the site is $out/index.html"
