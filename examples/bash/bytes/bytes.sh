# Answers with the eight bytes that begin every PNG file.

emit() {
    printf '\x89PNG\r\n\x1a\n'
}
