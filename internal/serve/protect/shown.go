package protect

// Plan is what is configured for a server, without a secret.
type Plan struct {
	Place     string `json:"place"`
	CopyTo    string `json:"copy_to,omitempty"`
	Kind      string `json:"kind"`
	Retention string `json:"retention,omitempty"` // in words; empty: all are kept
	Encrypted bool   `json:"encrypted"`
	Mirror    bool   `json:"mirror"`
}

// BackupKey names a backup.
type BackupKey struct{ Place, ID string }

// Kept says what retention does with a backup, and why.
type Kept struct {
	Keep    bool     `json:"keep"`
	Reasons []string `json:"reasons"`
}
