package accounts

// RotatedAnswer says what a rotation will do, or did.
type RotatedAnswer struct {
	Account string   `json:"account"` // user@host
	Server  string   `json:"server"`  // its name
	Plan    []string `json:"plan"`    // steps in words
	Notes   []string `json:"notes"`   // what it could break
	Undo    string   `json:"undo"`    // how it is taken back
	CutOff  string   `json:"cut_off"` // where an earlier rotation stands that did not finish; "": there is none
	Done    bool     `json:"done"`    // it was carried out
	Journal string   `json:"journal"` // path of the file that says what was done
}
