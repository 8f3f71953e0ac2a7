#!/bin/sh
# The MLflow server: PostgreSQL behind it, artifacts through it, a login in front of it.
# compose.yaml starts it in its image, the tests start it as it stands; every secret comes by
# the environment and none is in an address, a log or the list of processes.
set -eu

secret() {
  eval "value=\${$1:-}"
  if [ "${#value}" -lt 12 ]; then
    echo "start.sh: $1 is missing or shorter than 12 characters; see .env.example." >&2
    exit 2
  fi
}
secret POSTGRES_PASSWORD
secret MLFLOW_AUTH_ADMIN_PASSWORD
secret MLFLOW_FLASK_SERVER_SECRET_KEY
: "${MLFLOW_ALLOWED_HOSTS:?start.sh: set it to the names this server is reached by, with commas}"

# libpq reads the password here, so that no store's address holds it.
export PGPASSWORD="$POSTGRES_PASSWORD"
server="postgresql+psycopg2://${POSTGRES_USER:-mlflow}@${POSTGRES_HOST:-postgres}:${POSTGRES_PORT:-5432}"
unset POSTGRES_PASSWORD
export MLFLOW_BACKEND_STORE_URI="$server/mlflow"
export MLFLOW_ARTIFACTS_DESTINATION="${MLFLOW_ARTIFACTS_DESTINATION:-/artifacts}"
export MLFLOW_DISABLE_TELEMETRY=true

# A login is hashed at every call, and a run makes some forty: one that was right is known for a
# minute. A password that was changed in the database itself counts that much later.
settings=$(mktemp -d)
cat >"$settings/auth.ini" <<INI
[mlflow]
default_permission = ${MLFLOW_DEFAULT_PERMISSION:-NO_PERMISSIONS}
database_uri = $server/mlflow_auth
auth_cache_ttl_seconds = 60
authorization_function = mlflow.server.auth:authenticate_request_basic_auth
INI
export MLFLOW_AUTH_CONFIG_PATH="$settings/auth.ini"
export MLFLOW_AUTH_ADMIN_USERNAME="${MLFLOW_AUTH_ADMIN_USERNAME:-admin}"

exec mlflow server --app-name basic-auth --serve-artifacts \
  --host "${MLFLOW_LISTEN:-0.0.0.0}" --port "${MLFLOW_PORT:-5000}" --workers "${MLFLOW_WORKERS:-2}" \
  --allowed-hosts "$MLFLOW_ALLOWED_HOSTS" ${MLFLOW_ORIGINS:+--cors-allowed-origins "$MLFLOW_ORIGINS"}
