#!/bin/sh
# Makes an API key for workers with the bootstrap key and leaves it as /keys/worker, unless it is there.
set -eu
[ -s /keys/worker ] && exit 0
ca=/run/secrets/ca.pem
server=https://replica-1:8443
token=$(printf 'bootstrap:%s' "$(cat /run/secrets/bootstrap_secret)" | nightshift token --server "$server" --ca-file "$ca" --token-file -)
answer=$(curl -fsS --cacert "$ca" "$server/v1/api-keys" -H "Authorization: Bearer $token" -H 'Content-Type: application/json' \
	-d '{"name": "compose workers", "scopes": ["workers:register", "secrets:use"]}')
field() { printf '%s' "$answer" | sed -n "s/.*\"$1\" *: *\"\([^\"]*\)\".*/\1/p"; }
id=$(field client_id)
secret=$(field client_secret)
[ -n "$id" ] && [ -n "$secret" ] || { echo 'the server made no key' >&2; exit 1; }
umask 077
printf '%s:%s\n' "$id" "$secret" >/keys/worker.new
chown 10001:10001 /keys/worker.new
mv /keys/worker.new /keys/worker
