/*
 * Takes the program's place in the test guest, for a fifth of its boot time: responder VERSION ADDRESS. It answers what a
 * compute is asked at first, and keeps one image. A process for every connection.
 */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PORT = 3080, LONGEST = 4096 };

static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n";
static const char images[] = "/v2/compute/machine-emulator/images";

static void answer(FILE *out, const char *body) {
  fprintf(out, "%sContent-Length: %zu\r\n\r\n%s", head, strlen(body), body);
}

static void take(FILE *in, size_t length, FILE *kept) {
  for (int byte; length > 0 && (byte = getc(in)) != EOF; length--)
    if (kept != NULL) putc(byte, kept);
}

/* All of it, for a connection that ends with something unread is reset, and its answer may be lost. */
static void read_body(FILE *in, FILE *kept) {
  char line[LONGEST];
  size_t length = 0;
  int is_chunked = 0;
  while (fgets(line, sizeof line, in) != NULL && strcmp(line, "\r\n") != 0) {
    if (strncasecmp(line, "Content-Length:", 15) == 0) length = strtoul(line + 15, NULL, 10);
    if (strncasecmp(line, "Transfer-Encoding:", 18) == 0) is_chunked = 1;
  }
  if (!is_chunked) return take(in, length, kept);
  while (fgets(line, sizeof line, in) != NULL && (length = strtoul(line, NULL, 16)) > 0) {
    take(in, length, kept);
    if (fgets(line, sizeof line, in) == NULL) return;
  }
  while (fgets(line, sizeof line, in) != NULL && strcmp(line, "\r\n") != 0) continue;
}

/* It ends with its reader, as the program's does: a guest that is left alone is quiet. */
static void feed(FILE *out) {
  struct pollfd reader = {.fd = fileno(out), .events = POLLRDHUP};
  fprintf(out, "%s\r\n", head);
  do {
    fputs("{\"action\":\"ping\",\"event\":{\"cpu_usage_percent\":1,\"memory_usage_percent\":2}}\n", out);
    if (fflush(out) != 0) return;
  } while (poll(&reader, 1, 2000) == 0);
}

static void serve(FILE *in, FILE *out, char **arguments) {
  char line[LONGEST], method[16], path[LONGEST], body[LONGEST] = "{}";
  if (fgets(line, sizeof line, in) == NULL || sscanf(line, "%15s %4095s", method, path) != 2) return;
  FILE *kept = strcmp(method, "POST") == 0 ? fopen("/tmp/image", "w") : NULL;
  read_body(in, kept);
  if (kept != NULL) fclose(kept);
  if (strcmp(path, "/v2/compute/notifications") == 0) return feed(out);
  struct stat image;
  if (strcmp(path, "/v2/compute/capabilities") == 0)
    snprintf(body, sizeof body, "{\"version\":\"%s\",\"platform\":\"linux\",\"node_types\":[\"pc\"]}", arguments[1]);
  else if (strcmp(path, "/v2/compute/network/interfaces") == 0)
    snprintf(body, sizeof body, "[{\"name\":\"eth0\",\"ip_address\":\"%s\",\"netmask\":\"255.255.255.252\"}]", arguments[2]);
  else if (strcmp(path, images) == 0 && stat("/tmp/image", &image) == 0)
    snprintf(body, sizeof body, "[{\"filename\":\"lab.img\",\"filesize\":%ld}]", (long)image.st_size);
  answer(out, body);
}

int main(int count, char **arguments) {
  if (count != 3) return 2;
  struct sockaddr_in place = {.sin_family = AF_INET, .sin_port = htons(PORT)};
  int door = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
  setsockopt(door, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(door, (struct sockaddr *)&place, sizeof place) != 0 || listen(door, 64) != 0) return 1;
  signal(SIGCHLD, SIG_IGN);
  for (;;) {
    int connection = accept(door, NULL, NULL);
    if (connection < 0) continue;
    if (fork() == 0) {
      FILE *out = fdopen(dup(connection), "w");
      serve(fdopen(connection, "r"), out, arguments);
      fclose(out);
      exit(0);
    }
    close(connection);
  }
}
