#!/bin/sh
# Make the secrets that docker-compose.yml reads, each in a file of its own under secrets/; what is there stays.
# Certificates that end within half a year are made anew, so run this at every upgrade.
set -eu
cd "$(dirname "$0")/.."
folder=${SECRETS:-secrets}
command -v openssl >/dev/null || { echo "openssl is needed to make certificates" >&2; exit 1; }
# The containers' users read these files, so the folder keeps everybody else out.
mkdir -p "$folder"
chmod 700 "$folder"

random() {
    od -An -N 32 -t x1 /dev/urandom | tr -d ' \n'
}

make() {
    if [ ! -s "$folder/$1" ]; then
        printf '%s' "$2" >"$folder/$1"
        chmod 644 "$folder/$1"
        echo "made $folder/$1"
    fi
}

new_key() {
    (umask 077 && openssl ecparam -name prime256v1 -genkey -noout -out "$1")
}

# It tells what it does even when all is well.
quietly() {
    said=$("$@" 2>&1) || { echo "$said" >&2; exit 1; }
}

lasts() {
    openssl x509 -noout -checkend 15552000 -in "$folder/$1" >/dev/null
}

# The authority signs the servers' certificates and nothing else; its key is mounted nowhere, and readable here by its
# owner alone.
make_authority() {
    if [ -s "$folder/authority" ]; then
        lasts authority || echo "$folder/authority ends within half a year: replace it (docs/operations.md)" >&2
        return 0
    fi
    new_key "$folder/authority_key"
    cat >"$folder/request" <<END
[req]
distinguished_name = name
prompt = no
x509_extensions = signs
[name]
CN = DPAL servers $(random | cut -c 1-8)
[signs]
basicConstraints = critical, CA:TRUE, pathlen:0
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
END
    quietly openssl req -x509 -new -sha256 -days 3650 -config "$folder/request" -key "$folder/authority_key" \
        -out "$folder/authority.new"
    rm "$folder/request"
    chmod 644 "$folder/authority.new"
    mv "$folder/authority.new" "$folder/authority"
    echo "made $folder/authority"
}

still_good() {
    [ -s "$folder/$1_certificate" ] && [ -s "$folder/$1_key" ] && lasts "$1_certificate" &&
        openssl verify -CAfile "$folder/authority" "$folder/$1_certificate" >/dev/null 2>&1 &&
        [ "$(openssl x509 -noout -pubkey -in "$folder/$1_certificate")" = "$(openssl pkey -pubout -in "$folder/$1_key")" ]
}

# For the service's name on the compose network, and for its own health check.
make_certificate() {
    ! still_good "$1" || return 0
    if [ ! -s "$folder/authority_key" ]; then
        echo "the certificate of $1 must be made anew, for which $folder/authority_key is missing" >&2
        exit 1
    fi
    new_key "$folder/$1_key.new"
    quietly openssl req -new -sha256 -subj "/CN=$1" -key "$folder/$1_key.new" -out "$folder/request"
    cat >"$folder/extensions" <<END
subjectAltName = DNS:$1, DNS:localhost
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
END
    quietly openssl x509 -req -sha256 -days 825 -in "$folder/request" -CA "$folder/authority" \
        -CAkey "$folder/authority_key" -set_serial "0x$(random | cut -c 1-30)" -extfile "$folder/extensions" \
        -out "$folder/$1_certificate.new"
    rm "$folder/request" "$folder/extensions"
    chmod 644 "$folder/$1_key.new" "$folder/$1_certificate.new"
    mv "$folder/$1_key.new" "$folder/$1_key"
    mv "$folder/$1_certificate.new" "$folder/$1_certificate"
    echo "made $folder/$1_certificate; restart $1"
}

for name in secret_key pseudonym_key signing_key metrics_token postgres_password valkey_password; do
    make "$name" "$(random)"
done
make_authority
make_certificate postgres
make_certificate valkey
verified='?sslmode=verify-full\&sslrootcert=/run/secrets/authority'
# Before, one role owned the tables and used them; now it migrates alone, and web servers and workers get another.
if [ ! -s "$folder/database_owner_url" ] && grep -qs '^postgresql://dpal:.*@postgres:5432/dpal' "$folder/database_url"; then
    mv "$folder/database_url" "$folder/database_owner_url"
    echo "$folder/database_url is now $folder/database_owner_url, for migrate alone"
fi
if [ -s "$folder/database_url" ] && ! grep -q '@postgres:5432/dpal' "$folder/database_url"; then
    # A server of their own: only they know who owns the tables there.
    [ -e "$folder/database_owner_url" ] || : >"$folder/database_owner_url"
    [ -s "$folder/database_owner_url" ] ||
        echo "put the address of the tables' owner into $folder/database_owner_url, and another role's into $folder/database_url" >&2
else
    make database_owner_url "postgresql://dpal:$(cat "$folder/postgres_password")@postgres:5432/dpal"
fi
make database_url "postgresql://dpal_site:$(random)@postgres:5432/dpal"
make label_database_url "postgresql://dpal_label:$(random)@postgres:5432/dpal"
make broker_url "rediss://:$(cat "$folder/valkey_password")@valkey:6379/0"
# Addresses of the compose file's own servers, as just made or as they were before these spoke TLS.
demand() {
    if grep -q "$2" "$folder/$1"; then
        sed "$3" "$folder/$1" >"$folder/$1.new"
        chmod 644 "$folder/$1.new"
        mv "$folder/$1.new" "$folder/$1"
    fi
}
demand database_owner_url '@postgres:5432/dpal$' "s#\$#$verified#"
demand database_url '@postgres:5432/dpal$' "s#\$#$verified#"
demand label_database_url '@postgres:5432/dpal$' "s#\$#$verified#"
demand broker_url '^redis://.*@valkey:6379/0$' 's#^redis:#rediss:#'
# Empty until whoever runs the site fills them in. Without the first two mail becomes files, and there is no sign-in by an
# issuer; the next are a bucket's keys, of which the label process needs one that may only read; the last is for a cluster.
for name in email_url oidc_client_secret s3_key s3_secret label_s3_key label_s3_secret spark_defaults; do
    [ -e "$folder/$name" ] || : >"$folder/$name"
    chmod 644 "$folder/$name"
done
echo "Keep a copy of $folder/pseudonym_key and $folder/signing_key apart from the database's backup."
echo "Keep $folder/authority_key for the next certificates, here or apart; no container reads it."
