package fleet

// ChannelTLS is how a channel of replication is encrypted, in the words of SHOW REPLICA STATUS. Files are those of the replica's machine.
type ChannelTLS struct {
	On      bool   `json:"on"`                // it is
	CA      string `json:"ca,omitempty"`      // file of the authorities that it trusts
	CAPath  string `json:"capath,omitempty"`  // folder of them
	Cert    string `json:"cert,omitempty"`    // file of the certificate that it shows
	Key     string `json:"key,omitempty"`     // file of that one's key
	Cipher  string `json:"cipher,omitempty"`  // which ciphers it may use; "": all
	CRL     string `json:"crl,omitempty"`     // file of revoked certificates
	CRLPath string `json:"crlpath,omitempty"` // folder of them
	Verify  bool   `json:"verify,omitempty"`  // the name in the source's certificate is compared
}
