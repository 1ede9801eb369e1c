/* Switches, licence file, and the loop. */
#define _GNU_SOURCE
#include "iou.h"
#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* Other than what the service has as its defaults, so that a test sees whether these were read. */
enum { DEFAULT_NVRAM_KB = 64, DEFAULT_RAM_MB = 512 };

struct options options = {.ethernet = 2, .serial = 2, .nvram_kb = DEFAULT_NVRAM_KB, .ram_mb = DEFAULT_RAM_MB};

static char leftovers[4][120];
static volatile sig_atomic_t leftover_count;

void fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("iou: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  for (int i = 0; i < leftover_count; i++) unlink(leftovers[i]);
  exit(1);
}

void remove_at_end(const char *path) {
  int next = leftover_count;
  snprintf(leftovers[next], sizeof leftovers[next], "%s", path);
  leftover_count = next + 1;
}

/* Here and not in the loop, for that may be held up by a console that nobody reads. */
static void end(int signal) {
  (void)signal;
  for (int i = 0; i < leftover_count; i++) unlink(leftovers[i]);
  _exit(0);
}

int64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

unsigned ones_sum(const uint8_t *bytes, size_t length) {
  uint64_t sum = 0;
  for (size_t i = 0; i < length; i++) sum += i % 2 == 0 ? (unsigned)bytes[i] << 8 : bytes[i];
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return (unsigned)sum;
}

static void usage(FILE *to) {
  fprintf(to,
          "Usage: iou [options] <application id>\n"
          "<application id>: instance identifier (0 < id < %d)\n"
          "Options:\n"
          "-e <n>        Number of Ethernet interfaces (default 2)\n"
          "-s <n>        Number of Serial interfaces (default 2)\n"
          "-n <n>        Size of nvram in Kb (default %d KB)\n"
          "-m <n>        Megabytes of router memory (default %d MB)\n"
          "-c <name>     Configuration file name\n"
          "-h            Display this help\n"
          "-L            Disable local console, use remote console\n"
          "-l            Enable Layer 1 keepalive messages\n",
          ID_MAX + 1, DEFAULT_NVRAM_KB, DEFAULT_RAM_MB);
}

static unsigned number(const char *what, const char *text, unsigned least, unsigned most) {
  char *end;
  errno = 0;
  unsigned long value = strtoul(text, &end, 10);
  if (!isdigit((unsigned char)text[0]) || *end != '\0' || errno != 0 || value < least || value > most)
    fail("%s: expected a number from %u to %u, got \"%s\"", what, least, most, text);
  return (unsigned)value;
}

static void read_switches(int count, char **arguments) {
  int letter;
  opterr = 0;
  /* The plus: what comes after the id is not ours to look for switches in. */
  while ((letter = getopt(count, arguments, "+:e:s:n:m:c:lLh")) != -1) {
    switch (letter) {
    case 'e': options.ethernet = number("-e", optarg, 0, BAYS); break;
    case 's': options.serial = number("-s", optarg, 0, BAYS); break;
    case 'n': options.nvram_kb = number("-n", optarg, 8, 1024); break;
    case 'm': options.ram_mb = number("-m", optarg, 1, 65536); break;
    case 'c': options.config = optarg; break;
    case 'l': options.keepalives = true; break;
    case 'L': options.remote_console = true; break;
    case 'h': usage(stdout); exit(0);
    case ':': usage(stderr); fail("-%c: a value is missing", optopt);
    default: usage(stderr); fail("-%c: unknown option", optopt);
    }
  }
  if (optind != count - 1) {
    usage(stderr);
    fail("expected one application id, got %d", count - optind);
  }
  options.id = number("application id", arguments[optind], 1, ID_MAX);
  if (options.ethernet + options.serial > BAYS)
    fail("more than %d bays: -e %u -s %u", BAYS, options.ethernet, options.serial);
}

/* Without the white space around it. */
static char *trimmed(char *text) {
  while (isspace((unsigned char)*text)) text++;
  size_t length = strlen(text);
  while (length > 0 && isspace((unsigned char)text[length - 1])) text[--length] = '\0';
  return text;
}

/* The form only: any 16 digits will do. */
static void check_licence(void) {
  char host[256] = "", line[512];
  gethostname(host, sizeof host - 1);
  const char *path = getenv("IOURC");
  if (path == NULL || *path == '\0') fail("IOU License Error: IOURC is not set");
  FILE *file = fopen(path, "re");
  if (file == NULL) fail("IOU License Error: %s: %s", path, strerror(errno));
  bool has_section = false, is_in_section = false, has_line = false;
  while (!has_line && fgets(line, sizeof line, file) != NULL) {
    char *text = trimmed(line), *value = strchr(text, '=');
    if (*text == '[') has_section |= is_in_section = strcmp(text, "[license]") == 0;
    if (!is_in_section || *text == '#' || *text == ';' || value == NULL) continue;
    *value++ = '\0';
    if (strcmp(trimmed(text), host) != 0) continue;
    has_line = true;
    value = trimmed(value);
    size_t digits = strspn(value, "0123456789abcdefABCDEF");
    if (strcmp(value + digits, ";") != 0)
      fail("IOU License Error: the value for %s has to be hexadecimal digits and a semicolon", host);
    if (digits != 16) fail("IOU License Error: the value for %s has %zu digits, not 16", host, digits);
  }
  fclose(file);
  if (!has_section) fail("IOU License Error: %s has no section [license]", path);
  if (!has_line) fail("IOU License Error: %s has no line for %s", path, host);
}

static void handle_signals(void) {
  struct sigaction action = {.sa_handler = end};
  sigfillset(&action.sa_mask);
  int ends[] = {SIGTERM, SIGINT, SIGHUP};
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) sigaction(ends[i], &action, NULL);
  signal(SIGPIPE, SIG_IGN);
  /* Crashing is among the things it is for. */
  struct rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
}

static int wait_time(int64_t deadline) {
  if (deadline < 0) return -1;
  int64_t left = deadline - now_ms();
  return left < 0 ? 0 : left > 60000 ? 60000 : (int)left;
}

int main(int count, char **arguments) {
  read_switches(count, arguments);
  check_licence();
  netmap_read();
  handle_signals();
  int netio = netio_open();
  console_open();
  console_boot();
  console_continue();
  for (;;) {
    struct pollfd sources[] = {{.fd = netio, .events = POLLIN}, {.fd = console_input(), .events = POLLIN}};
    if (poll(sources, 2, wait_time(router_deadline())) < 0 && errno != EINTR) fail("poll: %s", strerror(errno));
    if (sources[0].revents != 0) {
      uint8_t frame[FRAME_MAX];
      unsigned port;
      ssize_t length;
      /* Not all at once, so that a flood leaves time for the console. */
      for (int i = 0; i < 64 && (length = netio_receive(&port, frame)) >= 0; i++)
        if (length > 0) router_receive(port, frame, (size_t)length);
    }
    if (sources[1].revents != 0) console_read();
    router_tick();
    console_continue();
  }
}
