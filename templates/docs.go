package templates

import "strings"

const docsBegin = `TOKEN=$(curl -sS $NIGHTSHIFT/v1/auth/token -u "$CLIENT_ID:$CLIENT_SECRET" \
  -d grant_type=client_credentials | jq -r .access_token)
curl -sS $NIGHTSHIFT/v1/whoami -H "Authorization: Bearer $TOKEN"`

func (t DocsType) words() string { return t.Before + t.Schema + t.After }

// words are what an operation is found by.
func (op DocsOperation) words() string {
	return strings.ToLower(op.Method + " " + op.Path + " " + op.Summary)
}
