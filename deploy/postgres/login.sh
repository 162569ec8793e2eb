#!/usr/bin/env bash
# Makes the login of Nightshift at the first start of the database. Row level security binds neither a superuser nor a
# BYPASSRLS role, so it is neither; it owns its database and may create the two roles it sets itself to.
set -eu
psql -v ON_ERROR_STOP=1 --username postgres --dbname postgres -v password="$(cat /run/secrets/login_password)" <<'SQL'
CREATE ROLE nightshift_login LOGIN CREATEROLE NOSUPERUSER NOBYPASSRLS PASSWORD :'password';
CREATE DATABASE nightshift OWNER nightshift_login;
SQL
