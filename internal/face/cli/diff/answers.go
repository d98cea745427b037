package diff

import "github.com/rissodb/risso/internal/explain/differ"

// SavedAnswer is what risso diff --save writes.
type SavedAnswer struct {
	File      string          `json:"file"`
	Server    string          `json:"server"`
	Variables int             `json:"variables"`
	Accounts  int             `json:"accounts"`
	Tables    int             `json:"tables"`
	Unread    []differ.Unread `json:"unread,omitempty"`
}
