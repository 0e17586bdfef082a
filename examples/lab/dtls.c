/* A client and a server of DTLS that converse by wolfSSL: dtls.py builds and runs it.
 *
 *     dtls FOLDER PORT 1.2|1.3 SUITE CLIENT_ID SERVER_ID MESSAGES SEED
 *
 * It prints a row of JSON for each record that wolfSSL encrypts: what its ciphers were given, as the linker leads each
 * call of them through here (--wrap). An id is the number of bytes of the connection id that a side wants in what it
 * gets; "-" is none. */
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <wolfssl/wolfcrypt/settings.h>
#include <wolfssl/internal.h>
#include <wolfssl/ssl.h>

/* Whose call of wolfSSL this is, and its name for the log. */
static WOLFSSL* current;
static const char* direction;
static const char* suite;
static int version;

static void row(const byte* in, word32 size, const byte* aad, word32 aad_size) {
    struct timespec now;
    word32 plain = size;
    int type, id = current->dtlsCidInfo && current->dtlsCidInfo->tx ? current->dtlsCidInfo->tx->length : 0;
    int inner = version == 3 || (aad_size > 8 && aad[0] == 0xff && aad[8] == 25);
    if (inner) {
        /* The content type follows the content; zeros may follow it. */
        while (plain > 0 && in[plain - 1] == 0) plain--;
        type = plain > 0 ? in[--plain] : -1;
    } else {
        type = aad[8];
    }
    clock_gettime(CLOCK_REALTIME, &now);
    unsigned epoch = version == 3 ? (unsigned)current->dtls13EncryptEpoch->epochNumber.n : current->keys.dtls_epoch;
    printf("{\"time_ns\": %lld%09ld, \"direction\": \"%s\", \"kind\": %d, \"plaintext\": %u, \"inner\": %u,"
           " \"padding\": %u, \"connection_id\": %d, \"epoch\": %u, \"version\": \"1.%d\", \"cipher\": \"%s\"}\n",
           (long long)now.tv_sec, now.tv_nsec, direction, type, plain, size, inner ? size - plain - 1 : 0, id,
           epoch, version, suite);
}

int __real_wc_AesGcmEncrypt(Aes*, byte*, const byte*, word32, const byte*, word32, byte*, word32, const byte*, word32);
int __real_wc_AesGcmEncrypt_ex(Aes*, byte*, const byte*, word32, byte*, word32, byte*, word32, const byte*, word32);
int __real_wc_AesCcmEncrypt(Aes*, byte*, const byte*, word32, const byte*, word32, byte*, word32, const byte*, word32);
int __real_wc_AesCcmEncrypt_ex(Aes*, byte*, const byte*, word32, byte*, word32, byte*, word32, const byte*, word32);
int __real_wc_Chacha_Process(ChaCha*, byte*, const byte*, word32);
int __real_wc_Poly1305_MAC(Poly1305*, const byte*, word32, const byte*, word32, byte*, word32);

#define WRAP(name, NONCE) \
    int __wrap_##name(Aes* aes, byte* out, const byte* in, word32 size, NONCE* nonce, word32 nonce_size, byte* tag, \
                      word32 tag_size, const byte* aad, word32 aad_size) { \
        row(in, size, aad, aad_size); \
        return __real_##name(aes, out, in, size, nonce, nonce_size, tag, tag_size, aad, aad_size); \
    }
WRAP(wc_AesGcmEncrypt, const byte)
WRAP(wc_AesGcmEncrypt_ex, byte)
WRAP(wc_AesCcmEncrypt, const byte)
WRAP(wc_AesCcmEncrypt_ex, byte)

/* ChaCha20-Poly1305 first makes a key of 32 bytes, then encrypts, then signs with the additional data. */
static byte plain[1 << 14];
static word32 plain_size;
static int calls;

int __wrap_wc_Chacha_Process(ChaCha* cipher, byte* out, const byte* in, word32 size) {
    if (cipher == current->encrypt.chacha && ++calls % 2 == 0) {
        memcpy(plain, in, size);
        plain_size = size;
    }
    return __real_wc_Chacha_Process(cipher, out, in, size);
}

int __wrap_wc_Poly1305_MAC(Poly1305* poly, const byte* aad, word32 aad_size, const byte* in, word32 size, byte* tag,
                           word32 tag_size) {
    if (calls > 0 && calls % 2 == 0) {
        row(plain, plain_size, aad, aad_size);
        calls = 0;
    }
    return __real_wc_Poly1305_MAC(poly, aad, aad_size, in, size, tag, tag_size);
}

static unsigned client_psk(WOLFSSL* ssl, const char* hint, char* identity, unsigned most, byte* key,
                           unsigned key_most) {
    (void)ssl, (void)hint, (void)key_most;
    strncpy(identity, "lab", most);
    memset(key, 7, 16);
    return 16;
}

static unsigned server_psk(WOLFSSL* ssl, const char* identity, byte* key, unsigned most) {
    (void)ssl, (void)identity, (void)most;
    memset(key, 7, 16);
    return 16;
}

static int fail(const char* what, WOLFSSL* ssl) {
    char text[80] = "";
    if (ssl) wolfSSL_ERR_error_string(wolfSSL_get_error(ssl, 0), text);
    fprintf(stderr, "%s: %s\n", what, text);
    exit(1);
}

static int bound(const char* address, int port, const char* peer, int peer_port) {
    int udp = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(port)}, other = own;
    inet_pton(AF_INET, address, &own.sin_addr);
    inet_pton(AF_INET, peer, &other.sin_addr);
    other.sin_port = htons(peer_port);
    if (bind(udp, (struct sockaddr*)&own, sizeof own) || connect(udp, (struct sockaddr*)&other, sizeof other)) {
        fail("the port is taken", NULL);
    }
    return udp;
}

struct side {
    WOLFSSL* ssl;
    int udp;
    const char* direction;
};

static void as(struct side* side) {
    current = side->ssl;
    direction = side->direction;
}

static struct side made(int server, const char* folder, int udp, const char* id) {
    static byte ids[2][256];
    char path[4096];
    WOLFSSL_METHOD* method = server ? (version == 3 ? wolfDTLSv1_3_server_method() : wolfDTLSv1_2_server_method())
                                    : (version == 3 ? wolfDTLSv1_3_client_method() : wolfDTLSv1_2_client_method());
    WOLFSSL_CTX* context = wolfSSL_CTX_new(method);
    if (!context || wolfSSL_CTX_set_cipher_list(context, suite) != WOLFSSL_SUCCESS) fail("no such suite", NULL);
    wolfSSL_CTX_set_verify(context, WOLFSSL_VERIFY_NONE, NULL);
    if (strstr(suite, "PSK")) {
        wolfSSL_CTX_set_psk_client_callback(context, client_psk);
        wolfSSL_CTX_set_psk_server_callback(context, server_psk);
    } else if (server) {
        snprintf(path, sizeof path, "%s/server.pem", folder);
        if (wolfSSL_CTX_use_certificate_file(context, path, WOLFSSL_FILETYPE_PEM) != WOLFSSL_SUCCESS) fail(path, NULL);
        snprintf(path, sizeof path, "%s/server.key", folder);
        if (wolfSSL_CTX_use_PrivateKey_file(context, path, WOLFSSL_FILETYPE_PEM) != WOLFSSL_SUCCESS) fail(path, NULL);
    }
    struct side side = {wolfSSL_new(context), udp, server ? "to_gateway" : "from_gateway"};
    wolfSSL_set_fd(side.ssl, udp);
    wolfSSL_dtls_set_using_nonblock(side.ssl, 1);
    wolfSSL_dtls_set_mtu(side.ssl, 1400);
    if (strcmp(id, "-") != 0) {
        int length = atoi(id);
        memset(ids[server], 0xa0 + server, sizeof ids[server]);
        wolfSSL_dtls_cid_use(side.ssl);
        if (length && wolfSSL_dtls_cid_set(side.ssl, ids[server], length) != WOLFSSL_SUCCESS) fail("id", side.ssl);
    }
    return side;
}

static void arrives(int udp) {
    struct pollfd waits = {udp, POLLIN, 0};
    if (poll(&waits, 1, 2000) != 1) fail("nothing arrived", NULL);
}

static int size_of_message(void) {
    /* Mostly the size of a command, sometimes up to what one record holds. */
    return rand() % 10 ? 1 + rand() % 300 : 1 + rand() % 1200;
}

static void tell(struct side* from, struct side* to) {
    static byte message[2048], got[2048];
    int size = size_of_message();
    as(from);
    if (wolfSSL_write(from->ssl, message, size) != size) fail("write", from->ssl);
    as(to);
    int read;
    do {
        arrives(to->udp);
        read = wolfSSL_read(to->ssl, got, sizeof got);
    } while (read < 0 && wolfSSL_want_read(to->ssl));
    if (read != size) fail("read", to->ssl);
}

int main(int count, char** word) {
    if (count != 9) return 2;
    const char* folder = word[1];
    int port = atoi(word[2]), own_port = port + 1 + atoi(word[8]) % 1000;
    version = word[3][2] - '0';
    suite = word[4];
    srand(atoi(word[8]));
    wolfSSL_Init();
    struct side client = made(0, folder, bound("127.0.0.1", own_port, "127.0.0.2", port), word[5]);
    struct side server = made(1, folder, bound("127.0.0.2", port, "127.0.0.1", own_port), word[6]);
    int connected = 0, accepted = 0;
    for (int turn = 0; turn < 1000 && !(connected && accepted); turn++) {
        as(&client);
        if (!connected) connected = wolfSSL_connect(client.ssl) == WOLFSSL_SUCCESS;
        if (!connected && !wolfSSL_want_read(client.ssl)) fail("connect", client.ssl);
        as(&server);
        if (!accepted) accepted = wolfSSL_accept(server.ssl) == WOLFSSL_SUCCESS;
        if (!accepted && !wolfSSL_want_read(server.ssl)) fail("accept", server.ssl);
    }
    if (!connected || !accepted) fail("the handshake did not end", NULL);
    int messages = atoi(word[7]);
    for (int number = 0; number < messages; number += 2) {
        tell(&server, &client);
        tell(&client, &server);
        if (version == 3 && number / 2 == messages / 4) {
            as(&client);
            wolfSSL_update_keys(client.ssl);
        }
    }
    as(&client);
    wolfSSL_shutdown(client.ssl);
    as(&server);
    wolfSSL_shutdown(server.ssl);
    return 0;
}
