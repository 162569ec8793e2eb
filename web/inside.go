package web

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"strconv"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"nightshift/handlers"
	"nightshift/models"
)

// inside answers a call of the API by the same routes, guards and handlers that a network request passes through. Only
// the token is left out: the caller is known.
func (s *Server) inside(_ context.Context, caller *handlers.Caller, call handlers.Call) (*handlers.Reply, error) {
	var request fasthttp.Request
	request.Header.SetMethod(call.Method)
	request.SetRequestURI(call.Path)
	request.Header.Set("X-Request-Id", caller.RequestID) // the audit names the request of the page
	if call.Body != nil {
		body, err := json.Marshal(call.Body)
		if err != nil {
			return nil, models.Errorf(models.Internal, "the body can't be written: %w", err)
		}
		request.Header.SetContentType(fiber.MIMEApplicationJSON)
		request.SetBodyRaw(body)
	}
	for i := 0; i+1 < len(call.Headers); i += 2 {
		request.Header.Set(call.Headers[i], call.Headers[i+1])
	}
	var ctx fasthttp.RequestCtx
	ctx.Init(&request, &net.TCPAddr{IP: net.IPv4zero}, nil)
	as := *caller
	handlers.SetInside(ctx.SetUserValue, &as)
	s.inner(&ctx)
	return replyOf(&ctx)
}

// replyOf tells an answer from a refusal.
func replyOf(ctx *fasthttp.RequestCtx) (*handlers.Reply, error) {
	answer := &ctx.Response
	reply := &handlers.Reply{
		Status: answer.StatusCode(), Location: string(answer.Header.Peek(fiber.HeaderLocation)), ETag: string(answer.Header.Peek(fiber.HeaderETag)),
		Body: append([]byte(nil), answer.Body()...),
	}
	if reply.Status < fiber.StatusBadRequest {
		return reply, nil
	}
	var problem Problem
	if err := json.Unmarshal(reply.Body, &problem); err != nil || problem.Code == "" {
		return nil, models.Errorf(models.Internal, "the API answered %d in no form of its own: %w", reply.Status, errors.Join(err))
	}
	after, _ := strconv.Atoi(string(answer.Header.Peek(fiber.HeaderRetryAfter))) // none is 0
	return nil, &models.Error{Code: problem.Code, Detail: problem.Detail, Fields: problem.Errors, RetryAfterSeconds: after}
}
