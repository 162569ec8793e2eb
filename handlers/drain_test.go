package handlers

import (
	"context"
	"errors"
	"testing"
)

func TestPollsEndWhenTheServerIsAboutToWhatIsUnderWayDoesNot(t *testing.T) {
	drain, begin := context.WithCancel(context.Background())
	requests, cut := context.WithCancel(context.Background())
	request := WithDrain(requests, drain)
	poll, stop := UntilDrain(request)
	defer stop()
	begin()
	<-poll.Done()
	if cause := context.Cause(poll); !errors.Is(cause, ErrEnding) || request.Err() != nil {
		t.Errorf("the poll ended with %v, the request with %v", cause, request.Err())
	}
	late, stop := UntilDrain(request)
	defer stop()
	<-late.Done()
	cut()
	<-request.Done()
	plain, stop := UntilDrain(context.Background())
	if plain.Err() != nil {
		t.Error("a context that knows of no drain ended")
	}
	stop()
	<-plain.Done()
}
