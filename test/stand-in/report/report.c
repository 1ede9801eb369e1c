/* Tries to reach what a program of a client must not reach, and says what it reached. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

extern char **environ;
static const char *files[] = FILES, *directories[] = DIRECTORIES, *sockets[] = SOCKETS, *ports[] = PORTS, *pids[] = PIDS;

static int reads(const char *path) {
  char byte;
  int fd = open(path, O_RDONLY);
  int got = fd >= 0 && read(fd, &byte, 1) == 1;
  if (fd >= 0) close(fd);
  return got;
}

static int writes(const char *directory) {
  char path[4096];
  snprintf(path, sizeof path, "%s/written-by-report", directory);
  int fd = open(path, O_WRONLY | O_CREAT, 0600);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

static int connects(const void *address, socklen_t length, int family) {
  int fd = socket(family, SOCK_STREAM, 0);
  int done = fd >= 0 && connect(fd, address, length) == 0;
  if (fd >= 0) close(fd);
  return done;
}

static int connects_unix(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  strncpy(address.sun_path, path, sizeof address.sun_path - 1);
  return connects(&address, sizeof address, AF_UNIX);
}

static int connects_tcp(int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return connects(&address, sizeof address, AF_INET);
}

/* By what the kernel shows of it, is a keeper there? */
static int sees_keeper(void) {
  FILE *list = popen("grep -lz '[k]eeper' /proc/[0-9]*/cmdline 2>/dev/null", "r");
  char line[256];
  int seen = 0;
  while (list != NULL && fgets(line, sizeof line, list) != NULL) seen |= strstr(line, "/self/") == NULL;
  if (list != NULL) pclose(list);
  return seen;
}

static int sum = 0, quiet;

static void tell(const char *name, int bit, int reached) {
  if (reached) sum |= bit;
  if (!quiet) printf("%s %s\n", name, reached ? "reached" : "refused");
}

int main(int argc, char **argv) {
  quiet = argc > 1 && strcmp(argv[1], "-h") == 0;
  int secret = 0, file = 0, directory = 0, unix_socket = 0, port = 0, signalled = 0;
  for (char **it = environ; *it != NULL; it++) secret |= strstr(*it, "SECRET") != NULL || strncmp(*it, "PATCHBAY_", 9) == 0;
  for (const char **it = files; *it != NULL; it++) file |= reads(*it);
  for (const char **it = directories; *it != NULL; it++) directory |= writes(*it);
  for (const char **it = sockets; *it != NULL; it++) unix_socket |= connects_unix(*it);
  for (const char **it = ports; *it != NULL; it++) port |= connects_tcp(atoi(*it));
  for (const char **it = pids; *it != NULL; it++) signalled |= kill(atoi(*it), 0) == 0;
  tell("secret", 1, secret);
  tell("shadow", 2, reads("/etc/shadow"));
  tell("file", 4, file);
  tell("directory", 8, directory);
  tell("socket", 16, unix_socket);
  tell("port", 32, port);
  tell("signal", 64, signalled);
  tell("keeper", 128, sees_keeper());
  if (quiet) {
    printf("Usage: report <application id>\n-e <n>  Number of Ethernet interfaces\n-m <n>  Megabytes of memory (default %dMB)\n", 256 + sum);
    return 0;
  }
  printf("user %d\ndone\n", (int)getuid());
  fflush(stdout);
  for (;;) pause();
}
