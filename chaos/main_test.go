package chaos

import (
	"fmt"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if os.Getenv("NIGHTSHIFT_CHAOS") != "" {
		if c, err := theCluster(); err == nil {
			_ = c.server.Abandon()
		}
		if code == 0 {
			_ = os.RemoveAll(scratch())
		} else {
			fmt.Println("logs are kept in", scratch())
		}
	}
	os.Exit(code)
}
