#!/bin/sh
# Make the secrets that docker-compose.yml reads, each in a file of its own under secrets/; what is there stays.
set -eu
cd "$(dirname "$0")/.."
folder=${SECRETS:-secrets}
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

for name in secret_key pseudonym_key signing_key metrics_token postgres_password valkey_password; do
    make "$name" "$(random)"
done
make database_url "postgresql://dpal:$(cat "$folder/postgres_password")@postgres:5432/dpal"
make label_database_url "postgresql://dpal_label:$(random)@postgres:5432/dpal"
make broker_url "redis://:$(cat "$folder/valkey_password")@valkey:6379/0"
# Empty until whoever runs the site fills them in. Without the first two mail becomes files, and there is no sign-in by an
# issuer; the others are a bucket's keys, of which the label process needs one that may only read.
for name in email_url oidc_client_secret s3_key s3_secret label_s3_key label_s3_secret; do
    [ -e "$folder/$name" ] || : >"$folder/$name"
    chmod 644 "$folder/$name"
done
echo "Keep a copy of $folder/pseudonym_key and $folder/signing_key apart from the database's backup."
