// What the content of a container may try by system calls; built for test/long/container-attacks.test.ts with gcc -static.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <netinet/in.h>
#include <net/if.h>
#include <sys/wait.h>
#include <sys/reboot.h>
#include <time.h>
#include <unistd.h>

static void say(const char *name, long result) { printf("%s: %s\n", name, result < 0 ? strerror(errno) : "DONE"); }

static void calls(void) {
  static char zeros[4096];
  struct timeval day = {1000000000, 0};
  struct timespec time = {1000000000, 0};
  say("settimeofday", settimeofday(&day, NULL));
  say("clock_settime", clock_settime(CLOCK_REALTIME, &time));
  say("init_module", syscall(SYS_init_module, zeros, sizeof zeros, ""));
  say("finit_module", syscall(SYS_finit_module, 0, "", 0));
  say("delete_module", syscall(SYS_delete_module, "tun", O_NONBLOCK));
  say("kexec_load", syscall(SYS_kexec_load, 0, 0, NULL, 0));
  say("bpf", syscall(SYS_bpf, 0, zeros, 72));
  say("perf_event_open", syscall(SYS_perf_event_open, zeros, 0, -1, -1, 0));
  say("userfaultfd", syscall(SYS_userfaultfd, 0));
  say("open_by_handle_at", syscall(SYS_open_by_handle_at, AT_FDCWD, zeros, 0));
  say("io_uring_setup", syscall(SYS_io_uring_setup, 8, zeros));
  say("add_key", syscall(SYS_add_key, "user", "attack", "x", 1, -3));
  say("request_key", syscall(SYS_request_key, "user", "attack", NULL, -3));
  say("keyctl", syscall(SYS_keyctl, 1, NULL));
  say("swapon", syscall(SYS_swapon, "/dev/zero", 0));
  say("acct", syscall(SYS_acct, "/tmp/acct"));
  say("syslog", syscall(SYS_syslog, 3, zeros, sizeof zeros));
  say("iopl", syscall(SYS_iopl, 3));
  say("fanotify_init", syscall(SYS_fanotify_init, 0, 0));
  say("quotactl", syscall(SYS_quotactl, 0x80000200, "/", 0, zeros));
  say("priority", syscall(SYS_setpriority, 0, 0, -20));

  say("reboot", reboot(RB_AUTOBOOT));
}

int main(int count, char **words) {
  const char *what = count > 1 ? words[1] : "";
  long many = count > 2 ? atol(words[2]) : 0;
  setvbuf(stdout, NULL, _IONBF, 0);
  setpgid(0, 0);
  if (!strcmp(what, "calls")) calls();
  if (!strcmp(what, "id")) printf("euid %d\n", geteuid());
  if (!strcmp(what, "inotify")) { // how many instances there are, and then waits
    long made = 0;
    for (; made < many; made++) if (inotify_init1(0) < 0) break;
    printf("made %ld\n", made);
    sleep(count > 3 ? atoi(words[3]) : 0);
  }
  if (!strcmp(what, "processes")) { // as many as there can be, each by another user
    long made = 0, fails = 0; int ready[2]; pipe(ready);
    for (; made + fails < many; ) {
      pid_t child = fork();
      if (child < 0) { printf("fork: %s\n", strerror(errno)); break; }
      if (!child) { char is = setuid(1 + made) < 0 ? 'n' : 'y'; 
        if (is == 'y' && fork() < 0) is = 'n';
        write(ready[1], &is, 1); for (;;) pause(); }
      char is; read(ready[0], &is, 1); if (is == 'y') made++; else fails++;
      if (fails > 3) break;
    }
    printf("made %ld\n", made);
    kill(0, SIGKILL);
  }
  if (!strcmp(what, "keyrings")) { // one a process
    long made = 0; int ready[2]; pipe(ready);
    for (; made < many; made++) {
      pid_t child = fork();
      if (child < 0) break;
      if (!child) { char is = syscall(SYS_keyctl, 1, NULL) < 0 ? 'n' : 'y'; write(ready[1], &is, 1); pause(); _exit(0); }
      char is; read(ready[0], &is, 1); if (is != 'y') break;
    }
    printf("made %ld\n", made);
    sleep(count > 3 ? atoi(words[3]) : 0);
    kill(0, SIGKILL);
  }
  if (!strcmp(what, "abstract")) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    strncpy(at.sun_path + 1, words[2], 100);
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    say("connect", connect(s, (void *)&at, sizeof(sa_family_t) + 1 + strlen(words[2])));
  }
  if (!strcmp(what, "flood")) { // broadcasts for a second
    int s = socket(AF_INET, SOCK_DGRAM, 0), yes = 1;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = INADDR_BROADCAST};
    static char data[1400];
    setsockopt(s, SOL_SOCKET, SO_BROADCAST, &yes, sizeof yes);
    say("device", setsockopt(s, SOL_SOCKET, SO_BINDTODEVICE, words[2], strlen(words[2])));
    long sent = 0;
    for (time_t end = time(NULL) + 2; time(NULL) < end; ) if (sendto(s, data, sizeof data, 0, (void *)&to, sizeof to) > 0) sent++;
    printf("sent %s\n", sent > 1000 ? "many" : "few");
  }
  if (!strcmp(what, "namespace")) { say("user namespace", unshare(CLONE_NEWUSER)); }
  if (!strcmp(what, "namespaces")) { // network namespaces, which stay open
    long made = 0;
    for (; made < many; made++) { if (unshare(CLONE_NEWNET) < 0) break; if (open("/proc/self/ns/net", O_RDONLY) < 0) break; }
    printf("made %ld\n", made);
  }
  if (!strcmp(what, "ptrace")) say("ptrace", ptrace(PTRACE_ATTACH, many, 0, 0));
  return 0;
}
