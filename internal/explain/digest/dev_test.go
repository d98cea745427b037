package digest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
)

func TestDev(t *testing.T) {
	f := os.Getenv("DEV_LOG")
	if f == "" {
		t.Skip("no DEV_LOG")
	}
	s, err := File(f)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Run(context.Background(), Options{Limit: 3}, s)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := json.MarshalIndent(p, "", " ")
	fmt.Println(string(b))
}
