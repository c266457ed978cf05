#!/bin/sh
# gpu_check.sh: the whole check on a real card (make gpu-check). docs/gpu.md says what it does.
#
# usage: gpu_check.sh [SECONDS]     how long traces run on the card (default 120)
# NVCC names the compiler of the kernels (default: nvcc on the PATH, where it is), PYTHON the interpreter
# (default: .venv/bin/python where it is, else python3), which needs numpy, cffi and msgspec. Exit codes: 0 all well, 1 a finding, 2 it could not be built, 3 there is no GPU.
root=$(cd "$(dirname "$0")/.." && pwd)
build="$root/build/gpu"
seconds=${1:-120}
[ -n "$PYTHON" ] || { PYTHON=python3; [ -x "$root/.venv/bin/python" ] && PYTHON="$root/.venv/bin/python"; }

"$PYTHON" - <<'PROBE' || exit 3
import ctypes, sys
try:
    cuda = ctypes.CDLL("libcuda.so.1")
except OSError:
    print("gpu-check needs a GPU with its driver, and libcuda.so.1 cannot be loaded here: nothing was checked.")
    sys.exit(3)
n = ctypes.c_int(0)
if cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(n)) or n.value < 1:
    print("gpu-check needs a GPU, and the CUDA driver here knows of none: nothing was checked.")
    sys.exit(3)
PROBE

mkdir -p "$build"
cmake=cmake
[ -x "$root/.venv/bin/cmake" ] && cmake="$root/.venv/bin/cmake"
echo "building"
{ "$cmake" -S "$root" -B "$build" -DGALLOCHECK_GPU=ON -DCMAKE_BUILD_TYPE=Release &&
  "$cmake" --build "$build" -j"$(nproc)" --target gallocheck_bundled driver_misuse; } > "$build/log" 2>&1 ||
  { cat "$build/log"; echo "gpu-check could not be built: nothing was checked."; exit 2; }

# The kernels for this very card, where nvcc is; else the driver compiles the committed PTX.
unset GALLOCHECK_KERNELS
nvcc=${NVCC:-nvcc}
if command -v "$nvcc" > /dev/null; then
  "$nvcc" --cubin -std=c++17 -O2 -arch=native -o "$build/kernels.cubin" "$root/native/driver/kernels.cu" >> "$build/log" 2>&1 &&
    export GALLOCHECK_KERNELS="$build/kernels.cubin"
fi

# The package as it lies here, under its own name.
mkdir -p "$build/python/gallocheck"
for part in cli fuzz model native spec scenario; do
  ln -sfn "$root/$part" "$build/python/gallocheck/$part"
done
ln -sfn "$root/package/gallocheck/__init__.py" "$build/python/gallocheck/__init__.py"
PYTHONPATH="$build/python${PYTHONPATH:+:$PYTHONPATH}" exec "$PYTHON" -m gallocheck.cli.gpu_check "$build/native" "$seconds"
