#!/usr/bin/env bash
# `sbatch docs/cluster/slurm.sh -P model=voxtral -P data=/shared/cbt-audio`, from the clone, in a
# folder all nodes share. What follows the script's name is passed on to `mlflow run`. A job
# that is requeued, or submitted again, goes on from the answers it has.
#SBATCH --job-name=undertone
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=32
#SBATCH --time=08:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
# Two minutes before its time is over the driver is asked to end, and ends in order.
#SBATCH --signal=B:TERM@120
set -euo pipefail

# An activated environment is inherited by sbatch; else activate the clone's own.
[ -z "${VIRTUAL_ENV:-}" ] && [ -f .venv/bin/activate ] && . .venv/bin/activate
export RAY_USAGE_STATS_ENABLED=0

head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
# Starts Ray on every node, runs the command on the first, and stops Ray when it has ended.
srun --nodes="$SLURM_NNODES" --ntasks="$SLURM_NNODES" \
  ray symmetric-run --address "$head:6379" --min-nodes "$SLURM_NNODES" -- \
  mlflow run . -e evaluate -P runner=ray -P node_runner=process "$@" &
running=$!
trap 'kill -TERM "$running"' TERM
# Once for the command's end, and again where a signal came before it.
wait "$running" || wait "$running"
