module writ.example/writ/internal/tools/signer

go 1.26

require github.com/miekg/pkcs11 v1.1.1
