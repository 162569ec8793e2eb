#!/usr/bin/env bash
# Makes the secrets that compose.yaml hands to its services, and an authority with a certificate for both replicas.
# What is there already stays.
set -euo pipefail
umask 077
cd "$(dirname "${BASH_SOURCE[0]}")"
mkdir -p secrets
cd secrets

made() { [ -s "$1" ] || "${@:2}" >"$1"; }
word() { openssl rand -hex 24; }

made postgres_password word
made login_password word
made bootstrap_secret word
made admin_password openssl rand -hex 12
made secret_key openssl rand -base64 32
made database_url printf 'postgres://nightshift_login:%s@postgres:5432/nightshift?sslmode=disable\n' "$(cat login_password)"

if [ ! -s server.pem ]; then
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj '/CN=Nightshift compose' \
		-addext 'basicConstraints=critical,CA:TRUE' -addext 'keyUsage=critical,keyCertSign' -keyout ca.key -out ca.pem 2>/dev/null
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj '/CN=nightshift' -keyout server.key -out server.csr 2>/dev/null
	openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 825 -out server.pem -extfile <(
		printf 'subjectAltName=DNS:replica-1,DNS:replica-2,DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=serverAuth\nbasicConstraints=CA:FALSE\n'
	) 2>/dev/null
	rm -f server.csr
fi
# Compose mounts the files as they are, for services of other users; nobody else enters the folder.
chmod 0700 .
chmod 0644 ./*
chmod 0600 ca.key
echo "secrets/ made. Log in at https://localhost:8443 as operator@nightshift.example, password in secrets/admin_password."
