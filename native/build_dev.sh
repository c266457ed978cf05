#!/bin/sh
# Builds both subject libraries into native/lib/ (not in git), for work from a checkout.
set -e
here=$(cd "$(dirname "$0")" && pwd)
build="$here/../build/dev"
cmake -S "$here/.." -B "$build" -DCMAKE_LIBRARY_OUTPUT_DIRECTORY="$here/lib" >/dev/null
cmake --build "$build" -j2
