#!/usr/bin/env bash
# Makes what scripts/release.sh links with and Debian 12 does not have in this form. Sources and packages are Debian's, checked by apt.
#
#   scripts/release_libraries.sh FOLDER
#
# FOLDER/glibc   the C library of Debian 11 (2.31), for the linker: a program that is linked with an old one starts with every later one
# FOLDER/prefix  static libcurl (HTTP and HTTPS alone) and libarchive (tar and zip alone). Debian's need libraries that it has in shared form only
set -euo pipefail

folder=$(realpath -m "$1")
jobs=$("$(dirname "${BASH_SOURCE[0]}")/jobs.sh")
mkdir -p "$folder/apt/lists/partial" "$folder/apt/cache/archives/partial" "$folder/sources" "$folder/packages"
# The same file names in every release folder, so that equal releases have equal bytes.
export CFLAGS="-O2 -g0 -fPIC -march=x86-64 -ffile-prefix-map=$folder=." SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-0}

keyring=/usr/share/keyrings/debian-archive-keyring.gpg mirror=${FEDBITS_DEBIAN_MIRROR:-http://deb.debian.org/debian}
cat >"$folder/apt/sources.list" <<LIST
deb [signed-by=$keyring] $mirror bullseye main
deb-src [signed-by=$keyring] $mirror bookworm main
deb-src [signed-by=$keyring] ${mirror%/debian}/debian-security bookworm-security main
LIST
apt_here() {
  apt-get -qq -o Dir::Etc::sourcelist="$folder/apt/sources.list" -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists="$folder/apt/lists" \
    -o Dir::Cache="$folder/apt/cache" -o APT::Sandbox::User=root "$@"
}

make_glibc() {
  (cd "$folder/packages" && apt_here download libc6/bullseye libc6-dev/bullseye)
  rm -rf "$folder/glibc"
  local package link target
  for package in "$folder"/packages/libc6*.deb; do dpkg-deb -x "$package" "$folder/glibc"; done
  # Links to /lib would leave the folder.
  find "$folder/glibc" -type l -lname '/*' | while read -r link; do
    target=$(readlink "$link")
    ln -sfn "$folder/glibc$target" "$link"
  done
}

make_curl() {
  (cd "$folder/sources" && rm -rf curl-* && apt_here source --only-source curl)
  # Neither protocols nor libraries that `fedbits data fetch` does not use. Certificates are those that
  # OpenSSL finds at run time, in /usr/lib/ssl (Debian) or where SSL_CERT_FILE points.
  cmake -G Ninja -S "$folder"/sources/curl-*/ -B "$folder/build/curl" -DCMAKE_BUILD_TYPE=None -DCMAKE_INSTALL_PREFIX="$folder/prefix" \
    -DCMAKE_INSTALL_LIBDIR=lib -DBUILD_SHARED_LIBS=OFF -DBUILD_CURL_EXE=OFF -DBUILD_TESTING=OFF -DHTTP_ONLY=ON -DCURL_USE_OPENSSL=ON \
    -DOPENSSL_USE_STATIC_LIBS=ON -DCURL_USE_LIBSSH2=OFF -DCURL_USE_LIBPSL=OFF -DCURL_USE_GSSAPI=OFF -DUSE_LIBIDN2=OFF -DUSE_NGHTTP2=OFF \
    -DCURL_BROTLI=OFF -DCURL_ZSTD=OFF -DCURL_ZLIB=ON -DCURL_DISABLE_LDAP=ON -DCURL_CA_BUNDLE=none -DCURL_CA_PATH=none -DCURL_CA_FALLBACK=ON -DENABLE_MANUAL=OFF >/dev/null
  cmake --build "$folder/build/curl" -j "$jobs" --target install >/dev/null
}

make_archive() {
  (cd "$folder/sources" && rm -rf libarchive-* && apt_here source --only-source libarchive)
  local without=() name
  for name in OPENSSL LIBB2 LZ4 LZO LZMA ZSTD BZip2 LIBXML2 EXPAT PCREPOSIX NETTLE MBEDTLS CNG ACL XATTR ICONV TEST TAR CPIO CAT; do without+=("-DENABLE_$name=OFF"); done
  cmake -G Ninja -S "$folder"/sources/libarchive-*/ -B "$folder/build/libarchive" -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS_RELEASE= -DCMAKE_INSTALL_PREFIX="$folder/prefix" \
    -DCMAKE_INSTALL_LIBDIR=lib -DBUILD_SHARED_LIBS=OFF -DENABLE_WERROR=OFF "${without[@]}" >/dev/null
  cmake --build "$folder/build/libarchive" -j "$jobs" --target install >/dev/null
}

apt_here update
make_glibc
make_curl
make_archive
ls "$folder/prefix/lib"
