/* Datagrams between instances: an 8-byte header and a frame, on UNIX sockets that are named by application ids. */
#define _GNU_SOURCE
#include "iou.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { HEADER = 8, TYPE_DATA = 1, CHANNEL = 0 };

struct end {
  unsigned id, port;
};

static struct end peers[PORTS]; /* id 0: leads nowhere */
static int netio = -1;

static bool read_end(unsigned id, unsigned bay, unsigned unit, struct end *end) {
  *end = (struct end){id, bay * UNITS + unit};
  return id >= 1 && id <= 1023 && bay < BAYS && unit < UNITS;
}

static void connect_ends(struct end here, struct end there, unsigned line) {
  if (here.id != options.id) return;
  if (peers[here.port].id != 0)
    fail("NETMAP: line %u: %u/%u is there twice", line, here.port / UNITS, here.port % UNITS);
  peers[here.port] = there;
}

void netmap_read(void) {
  FILE *file = fopen("NETMAP", "re");
  if (file == NULL) fail("NETMAP: %s", strerror(errno));
  char text[256], rest;
  for (unsigned line = 1; fgets(text, sizeof text, file) != NULL; line++) {
    unsigned n[6];
    struct end left, right;
    if (strspn(text, " \t\r\n") == strlen(text) || *text == '#') continue;
    /* The space after the last number takes the end of the line, so that one more character is one too many. */
    int found = sscanf(text, "%u:%u/%u %u:%u/%u %c", n, n + 1, n + 2, n + 3, n + 4, n + 5, &rest);
    if (found != 6 || !read_end(n[0], n[1], n[2], &left) || !read_end(n[3], n[4], n[5], &right))
      fail("NETMAP: line %u is not of the form id:bay/unit id:bay/unit", line);
    connect_ends(left, right, line);
    connect_ends(right, left, line);
  }
  fclose(file);
}

void netio_path(char *path, size_t size, const char *name) {
  snprintf(path, size, "/tmp/netio%u/%s", (unsigned)getuid(), name);
}

static void make_directory(void) {
  char path[64];
  struct stat found;
  netio_path(path, sizeof path, "");
  if (mkdir(path, 0700) != 0 && errno != EEXIST) fail("%s: %s", path, strerror(errno));
  if (stat(path, &found) != 0 || !S_ISDIR(found.st_mode) || found.st_uid != getuid())
    fail("%s is not a directory of this user", path);
}

/* Held until the process ends. Closing any descriptor of the file would let it go, so this one stays. */
static void lock(const char *path, const char *socket_path) {
  for (;;) {
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0) fail("%s: %s", path, strerror(errno));
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(file, F_SETLK, &whole) != 0)
      fail("%s is in use: another instance has application id %u", socket_path, options.id);
    struct stat held, named;
    /* The owner before us may have removed it between the two calls. */
    bool is_it = fstat(file, &held) == 0 && stat(path, &named) == 0 && held.st_ino == named.st_ino;
    if (!is_it) {
      close(file);
      continue;
    }
    remove_at_end(path);
    if (ftruncate(file, 0) != 0 || dprintf(file, "%d\n", (int)getpid()) < 0) fail("%s: %s", path, strerror(errno));
    return;
  }
}

int netio_bind(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
  int descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  unlink(path);
  if (descriptor < 0 || bind(descriptor, (struct sockaddr *)&address, sizeof address) != 0)
    fail("%s: %s", path, strerror(errno));
  remove_at_end(path);
  return descriptor;
}

int netio_open(void) {
  char name[16], path[64], lock_path[80];
  make_directory();
  snprintf(name, sizeof name, "%u", options.id);
  netio_path(path, sizeof path, name);
  snprintf(lock_path, sizeof lock_path, "%s.lck", path);
  lock(lock_path, path);
  return netio = netio_bind(path);
}

static uint8_t port_byte(unsigned port) { return (uint8_t)(port / UNITS + port % UNITS * 16); }

void netio_send(unsigned port, const uint8_t *frame, size_t length) {
  struct end peer = peers[port];
  if (peer.id == 0 || length > FRAME_MAX) return;
  uint8_t datagram[HEADER + FRAME_MAX];
  put16(datagram, peer.id);
  put16(datagram + 2, options.id);
  datagram[4] = port_byte(peer.port);
  datagram[5] = port_byte(port);
  datagram[6] = TYPE_DATA;
  datagram[7] = CHANNEL;
  memcpy(datagram + HEADER, frame, length);
  char name[16];
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(name, sizeof name, "%u", peer.id);
  netio_path(address.sun_path, sizeof address.sun_path, name);
  /* A peer that is not there or cannot keep up is a wire that loses frames. */
  (void)!sendto(netio, datagram, HEADER + length, 0, (struct sockaddr *)&address, sizeof address);
}

ssize_t netio_receive(unsigned *port, uint8_t *frame) {
  uint8_t datagram[HEADER + FRAME_MAX + 1];
  ssize_t length = recv(netio, datagram, sizeof datagram, 0);
  if (length < 0) return -1;
  if (length <= HEADER || length > HEADER + FRAME_MAX) return 0;
  if (get16(datagram) != options.id || datagram[6] != TYPE_DATA || datagram[7] != CHANNEL) return 0;
  unsigned bay = datagram[4] & 15, unit = datagram[4] >> 4;
  if (unit >= UNITS) return 0;
  *port = bay * UNITS + unit;
  memcpy(frame, datagram + HEADER, (size_t)length - HEADER);
  return length - HEADER;
}
