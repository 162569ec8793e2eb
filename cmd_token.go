package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"nightshift/web/certs"
)

const tokenPatience = 30 * time.Second

type tokenOptions struct {
	server, tokenFile, caFile, scope string
}

func newTokenCommand() *cobra.Command {
	var o tokenOptions
	cmd := &cobra.Command{
		Use:   "token --server URL --token-file FILE",
		Short: "Print an access token for an API key",
		Long: `Print an access token for an API key, fetched from a server by client credentials.
The file holds client_id:client_secret; - reads it from standard input. The token lasts 15 minutes:

  curl -H "Authorization: Bearer $(nightshift token --token-file key)" http://127.0.0.1:8080/v1/whoami`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			id, secret, err := readCredentials(o.tokenFile, cmd.InOrStdin())
			if err != nil {
				return usageError{err}
			}
			client, err := httpClient(o.caFile)
			if err != nil {
				return usageError{err}
			}
			token, err := fetchToken(cmd.Context(), client, o, id, secret)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), token)
			return err
		},
	}
	cmd.Flags().StringVar(&o.server, "server", "http://127.0.0.1:8080", "URL of the server")
	cmd.Flags().StringVar(&o.tokenFile, "token-file", "", "file with client_id:client_secret (- for standard input)")
	cmd.Flags().StringVar(&o.caFile, "ca-file", "", "authority of the server's certificate, in PEM; empty: the system's")
	cmd.Flags().StringVar(&o.scope, "scope", "", "narrow the token to these scopes, separated by spaces")
	_ = cmd.MarkFlagRequired("token-file") // fails for unknown flags alone
	return cmd
}

// readCredentials reads client_id:client_secret.
func readCredentials(path string, stdin io.Reader) (id, secret string, err error) {
	var content []byte
	if path == "-" {
		content, err = io.ReadAll(io.LimitReader(stdin, 4<<10))
	} else {
		content, err = os.ReadFile(path)
	}
	if err != nil {
		return "", "", fmt.Errorf("--token-file: %w", err)
	}
	id, secret, ok := strings.Cut(strings.TrimSpace(string(content)), ":")
	if !ok || id == "" || secret == "" {
		return "", "", fmt.Errorf("--token-file: %s does not hold client_id:client_secret", path)
	}
	return id, secret, nil
}

// httpClient trusts the given authority alone, or the system's.
func httpClient(caFile string) (*http.Client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if caFile != "" {
		roots, err := certs.Trust(caFile)
		if err != nil {
			return nil, fmt.Errorf("--ca-file: %w", err)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	return &http.Client{Transport: transport, Timeout: tokenPatience}, nil
}

func fetchToken(ctx context.Context, client *http.Client, o tokenOptions, id, secret string) (string, error) {
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {id}, "client_secret": {secret}}
	if o.scope != "" {
		form.Set("scope", o.scope)
	}
	target := strings.TrimRight(o.server, "/") + "/v1/auth/token"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target, strings.NewReader(form.Encode()))
	if err != nil {
		return "", usageError{fmt.Errorf("--server: %w", err)}
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	var answer struct {
		AccessToken string `json:"access_token"`
		Code        string `json:"code"`
		Detail      string `json:"detail"`
	}
	err = json.NewDecoder(io.LimitReader(response.Body, 1<<20)).Decode(&answer)
	switch {
	case response.StatusCode != http.StatusOK && answer.Code != "":
		return "", fmt.Errorf("%s refused: %s (%s)", target, answer.Detail, answer.Code)
	case response.StatusCode != http.StatusOK:
		return "", fmt.Errorf("%s answered %s", target, response.Status)
	case err != nil:
		return "", fmt.Errorf("%s answered no JSON: %w", target, err)
	case answer.AccessToken == "":
		return "", errors.New(target + " answered without a token")
	}
	return answer.AccessToken, nil
}
