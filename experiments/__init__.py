"""What a user runs: a module a command, the runners, and the MLflow tracking.

Importing any of it switches off what packages would report of their use. It has to be here: each
of them reads its variable once, when it is first imported, and children inherit ours.
"""

import os

TELEMETRY_OFF = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "ORT_DISABLE_TELEMETRY": "1",
    "PYANNOTE_METRICS_ENABLED": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "VLLM_NO_USAGE_STATS": "1",
    "GRADIO_ANALYTICS_ENABLED": "False",
}

for _name, _value in TELEMETRY_OFF.items():
    os.environ.setdefault(_name, _value)
