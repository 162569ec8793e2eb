//go:build hold

package main

import (
	_ "github.com/alexedwards/argon2id"
	_ "github.com/a-h/templ"
	_ "github.com/chromedp/chromedp"
	_ "github.com/danielgtaylor/huma/v2"
	_ "github.com/danielgtaylor/huma/v2/adapters/humafiber"
	_ "github.com/gofiber/fiber/v2"
	_ "github.com/golang-jwt/jwt/v5"
	_ "cel.dev/cel-go/cel"
	_ "github.com/google/uuid"
	_ "github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/pressly/goose/v3"
	_ "github.com/prometheus/client_golang/prometheus/promhttp"
	_ "github.com/spf13/cobra"
	_ "github.com/valyala/fasthttp"
	_ "golang.org/x/crypto/acme/autocert"
	_ "golang.org/x/sys/unix"
	_ "golang.org/x/term"
	_ "gorm.io/driver/postgres"
	_ "gorm.io/gorm"
	_ "gopkg.in/yaml.v3"
	_ "pgregory.net/rapid"
	_ "github.com/getkin/kin-openapi/openapi3"
)
