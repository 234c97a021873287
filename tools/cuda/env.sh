# Sourced by the scripts here: the environment of a build for CUDA.
if [ ! -f .sdk/cuda.env ]; then
  echo "run \`make cuda-sdk\` first" >&2
  exit 3
fi
while IFS= read -r line; do export "$line"; done <.sdk/cuda.env
