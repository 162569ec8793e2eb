package run

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"nightshift/workers"
	"nightshift/workers/protocol"
	"nightshift/workers/text"
)

// Endpoint is an OpenAI-compatible service for embeddings.
type Endpoint struct {
	URL   string // up to and with /v1
	Key   string
	Model string
}

// builtIn is the name of the vectoriser that needs no endpoint.
const builtIn = "hashing-tfidf"

func (e Endpoint) name() string {
	if e.URL == "" {
		return builtIn
	}
	return e.Model
}

const embedBatch = 100

type embeddingsRequest struct {
	Model string   `json:"model"`
	Input []string `json:"input"`
}

type embeddingsAnswer struct {
	Data []struct {
		Index     int       `json:"index"`
		Embedding []float32 `json:"embedding"`
	} `json:"data"`
	Usage struct {
		PromptTokens int64 `json:"prompt_tokens"`
	} `json:"usage"`
}

func (e Endpoint) embed(ctx context.Context, g *guard, t *workers.Task, texts []string) ([][]text.Term, error) {
	out := make([][]text.Term, 0, len(texts))
	tokens := int64(0)
	for from := 0; from < len(texts); from += embedBatch {
		batch := texts[from:min(from+embedBatch, len(texts))]
		answer, err := e.call(ctx, g, batch)
		if err != nil {
			return nil, err
		}
		if len(answer.Data) != len(batch) {
			return nil, workers.Errorf(protocol.ClassMalformedOutput, "%d texts came back as %d vectors", len(batch), len(answer.Data))
		}
		vectors := make([][]text.Term, len(batch))
		for _, row := range answer.Data {
			if row.Index < 0 || row.Index >= len(batch) || vectors[row.Index] != nil {
				return nil, workers.Errorf(protocol.ClassMalformedOutput, "the vectors are not numbered 0 to %d", len(batch)-1)
			}
			vectors[row.Index] = dense(row.Embedding)
		}
		out = append(out, vectors...)
		tokens += answer.Usage.PromptTokens
		t.Usage(func(u *protocol.Usage) { u.Model, u.TokensIn = &e.Model, &tokens })
	}
	return out, nil
}

func (e Endpoint) call(ctx context.Context, g *guard, texts []string) (embeddingsAnswer, error) {
	var answer embeddingsAnswer
	body, err := json.Marshal(embeddingsRequest{e.Model, texts})
	if err != nil {
		return answer, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(e.URL, "/")+"/embeddings", bytes.NewReader(body))
	if err != nil {
		return answer, workers.Errorf(protocol.ClassInvalidInput, "embedding endpoint: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	if e.Key != "" {
		request.Header.Set("Authorization", "Bearer "+e.Key)
	}
	response, err := g.client(0).Do(request)
	if err != nil {
		return answer, unanswered(ctx, err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, 64<<20))
	if err != nil {
		return answer, unanswered(ctx, err)
	}
	if response.StatusCode != http.StatusOK {
		return answer, refused(response, string(content))
	}
	if err := json.Unmarshal(content, &answer); err != nil {
		return answer, workers.Errorf(protocol.ClassMalformedOutput, "the endpoint's answer is not what it should be: %w", err)
	}
	return answer, nil
}

// dense writes a dense vector as terms, so that one index serves both sorts.
func dense(values []float32) []text.Term {
	terms := make([]text.Term, 0, len(values))
	for i, v := range values {
		if v != 0 {
			terms = append(terms, text.Term{Dim: uint32(i), Weight: v})
		}
	}
	return terms
}
