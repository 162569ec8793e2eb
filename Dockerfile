# syntax=docker/dockerfile:1

FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG VERSION=devel
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /out/nightshift .

FROM debian:bookworm-slim
# PostgreSQL is for the embedded database alone; with DATABASE_URL it lies unused. No cluster of the package's own.
RUN mkdir -p /etc/postgresql-common \
 && echo 'create_main_cluster = false' > /etc/postgresql-common/createcluster.conf \
 && apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates curl postgresql \
 && rm -rf /var/lib/apt/lists/*
# initdb refuses a user without an entry in passwd, and a volume takes the owner of the folder it covers.
RUN groupadd --gid 10001 nightshift \
 && useradd --uid 10001 --gid nightshift --no-create-home --home-dir /var/lib/nightshift --shell /usr/sbin/nologin nightshift \
 && install -d -o nightshift -g nightshift -m 0755 /var/lib/nightshift
COPY --from=build /out/nightshift /usr/local/bin/nightshift
USER nightshift
WORKDIR /var/lib/nightshift
VOLUME /var/lib/nightshift
# A container is reached from outside, so it listens on every address, and so with TLS: ca.pem in the volume is the
# authority to trust. Behind a proxy that ends TLS: NIGHTSHIFT_TLS=off NIGHTSHIFT_BEHIND_PROXY=true.
ENV NIGHTSHIFT_DATA=/var/lib/nightshift \
    NIGHTSHIFT_LISTEN=0.0.0.0:8080 \
    NIGHTSHIFT_TLS=self-signed
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s --start-interval=1s \
    CMD curl -fsSk https://localhost:8080/readyz || curl -fsS http://localhost:8080/readyz
ENTRYPOINT ["nightshift"]
CMD ["serve"]
