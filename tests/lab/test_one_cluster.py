"""One cluster, driven by the real kubectl: what a pod finds, how it lives, how it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab import topologies as t
from tests.support.lab import LabProcess

FETCH = (
    "import sys, urllib.request as u;"
    " print(u.build_opener(u.ProxyHandler({})).open(sys.argv[1], timeout=3).status)"
)
FETCH_ERROR = (
    "import sys, urllib.request as u\n"
    "try: u.build_opener(u.ProxyHandler({})).open(sys.argv[1], timeout=3)\n"
    "except Exception as e: print(type(getattr(e, 'reason', e)).__name__)"
)
MOUNTS = [
    {"name": "conf", "mountPath": "/etc/conf"},
    {"name": "conf", "mountPath": "/not-there/file.txt", "subPath": "file.txt"},
    {"name": "room", "mountPath": "/room"},
    {"name": "about", "mountPath": "/about"},
    {"name": "token", "mountPath": "/var/run/secrets/tokens"},
]
VOLUMES = [
    {"name": "conf", "configMap": {"name": "conf"}},
    {"name": "room", "emptyDir": {}},
    {
        "name": "about",
        "downwardAPI": {
            "items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]
        },
    },
    {
        "name": "token",
        "projected": {
            "sources": [{"serviceAccountToken": {"path": "mesh", "audience": "identity.l5d.io"}}]
        },
    },
]
ENV = [
    {"name": "PORT", "value": "8080"},
    {"name": "GREETING", "valueFrom": {"configMapKeyRef": {"name": "conf", "key": "greeting"}}},
    {"name": "WORD", "valueFrom": {"secretKeyRef": {"name": "hidden", "key": "word"}}},
    {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
    {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
    {"name": "URL", "value": "http://$(POD_IP):$(PORT)/"},
]
SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "hidden", "namespace": "default"},
    "stringData": {"word": "sesame"},
}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabProcess]:
    """A cluster with three echo pods, and a machine outside."""
    folder = tmp_path_factory.mktemp("lab")
    echo = t.deployment(
        "echo", 3, t.container(env=ENV, envFrom=[{"configMapRef": {"name": "more"}}],
                               volumeMounts=MOUNTS), volumes=VOLUMES,
    )  # fmt: skip
    objects = [
        t.config("conf", greeting="hello", **{"file.txt": "content\n"}),
        t.config("more", EXTRA="yes"),
        SECRET,
        echo,
        t.service("echo", type="LoadBalancer"),
    ]
    topology = {
        "clusters": [t.cluster(1, "east", "flat", "apps")],
        "networks": [
            {"name": "flat", "cidr": "172.17.1.0/24"},
            {"name": "egress", "cidr": "198.51.100.0/24", "reachableFrom": ["east"]},
        ],
        "hosts": [
            {
                "name": "color",
                "network": "egress",
                "run": {"image": t.ECHO, "env": {"PORT": "8000"}},
            }
        ],
    }
    path = t.write(folder, topology, apps=objects)
    with LabProcess(folder / "state", path) as running:
        running.kubectl("rollout", "status", "deploy/echo", "--timeout=30s")
        yield running


def echo_pods(lab: LabProcess) -> list[dict[str, Any]]:
    found = lab.get("pods", "-l", "app=echo")["items"]
    return [each for each in found if "deletionTimestamp" not in each["metadata"]]


def name_of(pod: dict[str, Any]) -> str:
    return str(pod["metadata"]["name"])


def inside(lab: LabProcess, pod: str, *command: str) -> str:
    return lab.kubectl("exec", pod, "--", *command)


def fetch(lab: LabProcess, pod: str, url: str) -> str:
    return inside(lab, pod, "python3", "-c", FETCH, url).strip()


def apply(lab: LabProcess, *objects: dict[str, Any]) -> None:
    text = "\n---\n".join(json.dumps(each) for each in objects)
    lab.kubectl("apply", "-f", "-", stdin=text)


# --------------------------------------------------------------------------------- what a pod finds


def test_pods_have_addresses_of_their_own_and_reach_each_other(lab: LabProcess) -> None:
    first, *others = echo_pods(lab)
    ips = {pod["status"]["podIP"] for pod in (first, *others)}
    assert len(ips) == 3
    assert all(ip.startswith("10.55.1.") for ip in ips)
    for ip in ips:
        assert fetch(lab, name_of(first), f"http://{ip}:8080/") == "200"


def test_the_status_says_where_and_since_when(lab: LabProcess) -> None:
    status = echo_pods(lab)[0]["status"]
    assert status["hostIP"] == "172.17.1.2"
    assert status["phase"] == "Running"
    conditions = {each["type"]: each["status"] for each in status["conditions"]}
    assert conditions == dict.fromkeys(
        ("PodScheduled", "PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready"),
        "True",
    )
    container = status["containerStatuses"][0]
    assert (container["ready"], container["started"], container["restartCount"]) == (True, True, 0)
    assert "startedAt" in container["state"]["running"]


def test_the_environment_follows_every_kind_of_reference(lab: LabProcess) -> None:
    pod = echo_pods(lab)[0]
    env = dict(line.split("=", 1) for line in inside(lab, name_of(pod), "env").splitlines())
    ip = pod["status"]["podIP"]
    assert {name: env[name] for name in ("GREETING", "WORD", "EXTRA", "POD_IP", "NODE", "URL")} == {
        "GREETING": "hello", "WORD": "sesame", "EXTRA": "yes", "POD_IP": ip, "NODE": "east-node",
        "URL": f"http://{ip}:8080/",
    }  # fmt: skip
    assert (env["KUBERNETES_SERVICE_HOST"], env["KUBERNETES_SERVICE_PORT"]) == ("10.56.1.1", "443")
    assert env["HOSTNAME"] == name_of(pod)


def test_volumes_are_files_wherever_they_are_wanted_and_the_machine_is_untouched(
    lab: LabProcess,
) -> None:
    pod = name_of(echo_pods(lab)[0])
    assert inside(lab, pod, "cat", "/etc/conf/file.txt") == "content\n"
    assert inside(lab, pod, "cat", "/not-there/file.txt") == "content\n"
    assert 'app="echo"' in inside(lab, pod, "cat", "/about/labels")
    inside(lab, pod, "sh", "-c", "echo mine > /room/note")
    assert inside(lab, pod, "cat", "/room/note") == "mine\n"
    other = name_of(echo_pods(lab)[1])
    assert inside(lab, other, "ls", "/room") == ""
    for path in ("/etc/conf", "/not-there", "/room", "/about", "/var/run/secrets/tokens"):
        assert not Path(path).exists()


def test_a_projected_token_is_for_its_audience(lab: LabProcess) -> None:
    pod = name_of(echo_pods(lab)[0])
    token = inside(lab, pod, "cat", "/var/run/secrets/tokens/mesh")
    review = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": token, "audiences": ["identity.l5d.io"]},
    }
    said = json.loads(lab.kubectl("create", "-f", "-", "-o", "json", stdin=json.dumps(review)))[
        "status"
    ]
    assert said["authenticated"] is True
    assert said["user"]["username"] == "system:serviceaccount:default:default"


def test_the_api_is_reached_from_a_pod_with_its_own_token(lab: LabProcess) -> None:
    pod = name_of(echo_pods(lab)[0])
    script = (
        "import os, ssl, urllib.request as u;"
        "d='/var/run/secrets/kubernetes.io/serviceaccount/';"
        "c=ssl.create_default_context(cafile=d+'ca.crt');"
        "r=u.Request('https://%s/version' % os.environ['KUBERNETES_SERVICE_HOST'],"
        "headers={'Authorization': 'Bearer '+open(d+'token').read()});"
        "o=u.build_opener(u.ProxyHandler({}), u.HTTPSHandler(context=c));"
        "print(o.open(r).status, open(d+'namespace').read())"
    )
    assert inside(lab, pod, "python3", "-c", script) == "200 default\n"


def test_names_are_resolved_by_files_of_the_pod(lab: LabProcess) -> None:
    pod = echo_pods(lab)[0]
    resolv = inside(lab, name_of(pod), "cat", "/etc/resolv.conf")
    assert resolv.splitlines() == [
        "nameserver 10.56.1.10",
        "search default.svc.cluster.local svc.cluster.local cluster.local",
        "options ndots:5",
    ]
    assert fetch(lab, name_of(pod), "http://color:8000/") == "200"


def test_a_load_balancer_has_an_address_and_a_port_on_the_machine(lab: LabProcess) -> None:
    lab.wait("svc/echo", ".status.loadBalancer.ingress[0].ip", "172.17.1.128")
    published = lab.status["clusters"][0]["published"]
    assert [(each["service"], each["address"], each["port"]) for each in published] == [
        ("default/echo", "172.17.1.128", 80)
    ]
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    assert opener.open(f"http://{published[0]['host']}/", timeout=10).status == 200
    pod = name_of(echo_pods(lab)[0])
    assert fetch(lab, pod, "http://172.17.1.128/") == "200"


def test_a_pod_without_a_sidecar_reaches_services_by_name_and_address(lab: LabProcess) -> None:
    pod, ip = name_of(echo_pods(lab)[0]), lab.get("svc", "echo")["spec"]["clusterIP"]
    for host in ("echo", "echo.default.svc.cluster.local", ip):
        assert fetch(lab, pod, f"http://{host}/") == "200"
    none = inside(lab, pod, "python3", "-c", FETCH_ERROR, f"http://{ip}:81/").strip()
    assert none in ("ConnectionResetError", "RemoteDisconnected", "ConnectionRefusedError")


# ------------------------------------------------------------------------------------ logs and exec


def test_exec_has_streams_and_an_exit_code(lab: LabProcess) -> None:
    pod = name_of(echo_pods(lab)[0])
    done = lab.try_kubectl("exec", pod, "--", "sh", "-c", "echo out; echo err >&2; exit 5")
    assert (done.returncode, done.stdout) == (5, "out\n")
    assert "err\n" in done.stderr
    assert lab.kubectl("exec", "-i", pod, "--", "cat", stdin="x" * 300_000) == "x" * 300_000


def test_exec_of_a_program_that_is_not_there_says_so(lab: LabProcess) -> None:
    done = lab.try_kubectl("exec", name_of(echo_pods(lab)[0]), "--", "no-such-program")
    assert done.returncode != 0
    assert "no-such-program" in done.stderr


def test_exec_in_a_terminal(lab: LabProcess) -> None:
    pod = name_of(echo_pods(lab)[0])
    ours, theirs = os.openpty()
    script = "stty size; tty >/dev/null && echo terminal; read line; echo got $line"
    running = subprocess.Popen(
        lab.command("exec", "-it", pod, "--", "sh", "-c", script),
        stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    os.write(ours, b"hello\r")
    out, _ = running.communicate(timeout=30)
    os.close(ours)
    os.close(theirs)
    assert running.returncode == 0
    assert b"terminal" in out
    assert b"got hello" in out


def test_logs_are_shown_followed_and_cut(lab: LabProcess) -> None:
    apply(lab, t.pod("talker", t.shell("for i in 1 2 3; do echo line $i; done; exec sleep 60")))
    lab.kubectl("wait", "pod/talker", "--for=condition=Ready", "--timeout=30s")
    assert lab.kubectl("logs", "talker") == "line 1\nline 2\nline 3\n"
    assert lab.kubectl("logs", "talker", "--tail=1") == "line 3\n"
    stamped = lab.kubectl("logs", "talker", "--timestamps", "--tail=1")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z line 3\n", stamped)
    following = subprocess.Popen(
        lab.command("logs", "-f", "talker"), stdout=subprocess.PIPE, text=True
    )
    assert following.stdout is not None
    assert [following.stdout.readline() for _ in range(3)][-1] == "line 3\n"
    lab.kubectl("exec", "talker", "--", "sh", "-c", "echo from beside > /proc/$PPID/fd/1 || true")
    lab.kubectl("delete", "pod", "talker")
    following.communicate(timeout=30)
    assert following.returncode == 0  # it ends when the pod does


def test_the_log_of_the_run_before(lab: LabProcess) -> None:
    apply(
        lab, t.pod("again", t.shell("echo run; test -e seen && exec sleep 60; touch seen; exit 3"))
    )
    lab.wait("pod/again", ".status.containerStatuses[0].restartCount", "1")
    lab.kubectl("wait", "pod/again", "--for=condition=Ready", "--timeout=30s")
    assert lab.kubectl("logs", "-p", "again") == "run\n"
    last = lab.get("pod", "again")["status"]["containerStatuses"][0]["lastState"]["terminated"]
    assert (last["exitCode"], last["reason"]) == (3, "Error")
    lab.kubectl("delete", "pod", "again")


def test_a_request_is_passed_on_to_the_pod(lab: LabProcess) -> None:
    pod = name_of(echo_pods(lab)[0])
    path = f"/api/v1/namespaces/default/pods/{pod}"
    assert "Directory listing" in lab.kubectl("get", "--raw", f"{path}:8080/proxy/")
    assert "Directory listing" in lab.kubectl("get", "--raw", f"{path}:http/proxy/?x=1")


def test_the_lab_itself_shows_the_same(lab: LabProcess) -> None:
    pod = name_of(echo_pods(lab)[0])
    done = lab.cli("exec", pod, "--", "sh", "-c", "cat; exit 4")
    assert done.returncode == 4
    assert lab.cli("exec", "-i", pod, "--", "cat", stdin=b"abc").stdout == b"abc"
    assert b"GET /" in lab.cli("logs", pod).stdout
    assert lab.cli("exec", "color", "--", "hostname").stdout == b"color\n"
    table = lab.cli("status").stdout.decode()
    assert pod in table
    assert "172.17.1.128:80" in table
    nobody = lab.cli("logs", "nobody")
    assert nobody.returncode == 1
    assert b"no pod and no host 'nobody'" in nobody.stderr


# ------------------------------------------------------------------------------------- how it lives


def test_scaling_up_and_down(lab: LabProcess) -> None:
    lab.kubectl("scale", "deploy/echo", "--replicas=5")
    lab.kubectl("rollout", "status", "deploy/echo", "--timeout=30s")
    assert len(echo_pods(lab)) == 5
    lab.kubectl("scale", "deploy/echo", "--replicas=3")
    lab.wait("deploy/echo", ".status.replicas", "3")
    lab.wait("deploy/echo", ".status.readyReplicas", "3")


def test_a_rollout_replaces_every_pod(lab: LabProcess) -> None:
    before = {name_of(pod) for pod in echo_pods(lab)}
    lab.kubectl("rollout", "restart", "deploy/echo")
    lab.kubectl("rollout", "status", "deploy/echo", "--timeout=30s")
    assert not before & {name_of(pod) for pod in echo_pods(lab)}


def test_a_container_that_dies_is_started_again_in_its_place(lab: LabProcess) -> None:
    apply(lab, t.pod("mortal", t.container(command=["python3", "-m", "http.server", "8080"])))
    lab.kubectl("wait", "pod/mortal", "--for=condition=Ready", "--timeout=30s")
    ip = lab.get("pod", "mortal")["status"]["podIP"]
    kill = (
        "for p in /proc/[0-9]*; do n=${p#/proc/}; [ $n != $$ ] &&"
        ' [ "$(readlink $p/ns/net)" = "$(readlink /proc/self/ns/net)" ] && kill -9 $n; done; true'
    )
    lab.try_kubectl("exec", "mortal", "--", "sh", "-c", kill)
    lab.wait("pod/mortal", ".status.containerStatuses[0].restartCount", "1")
    lab.kubectl("wait", "pod/mortal", "--for=condition=Ready", "--timeout=30s")
    status = lab.get("pod", "mortal")["status"]
    assert status["podIP"] == ip
    last = status["containerStatuses"][0]["lastState"]["terminated"]
    assert (last["exitCode"], last["signal"]) == (137, 9)
    lab.kubectl("delete", "pod", "mortal")


def test_one_that_dies_again_and_again_waits_longer_each_time(lab: LabProcess) -> None:
    apply(lab, t.pod("crasher", t.shell("exit 1")))
    reason = ".status.containerStatuses[0].state.waiting.reason"
    lab.wait("pod/crasher", reason, "CrashLoopBackOff")
    assert "CrashLoopBackOff" in lab.kubectl("get", "pod", "crasher")
    message = lab.get("pod", "crasher")["status"]["containerStatuses"][0]["state"]["waiting"]
    assert "restarting failed container=main" in message["message"]
    lab.kubectl("delete", "pod", "crasher")


def test_probes_decide_readiness_and_restarts(lab: LabProcess) -> None:
    alive = {"exec": {"command": ["test", "-e", "/tmp/not-there-at-all"]}, "periodSeconds": 1}
    ready = {"tcpSocket": {"port": 1}, "periodSeconds": 1}
    apply(
        lab,
        t.pod("sick", t.shell("exec sleep 60", livenessProbe={**alive, "failureThreshold": 2})),
        t.pod("shy", t.container(readinessProbe=ready)),
        t.pod("slow", t.container(startupProbe={"httpGet": {"port": 8080}, "periodSeconds": 1})),
    )
    lab.wait("pod/sick", ".status.containerStatuses[0].restartCount", "1")
    lab.kubectl("wait", "pod/slow", "--for=condition=Ready", "--timeout=30s")
    lab.wait("pod/shy", ".status.phase", "Running")
    conditions = {c["type"]: c for c in lab.get("pod", "shy")["status"]["conditions"]}
    assert conditions["Ready"]["status"] == "False"
    assert conditions["Ready"]["reason"] == "ContainersNotReady"
    lab.kubectl("delete", "pod", "sick", "shy", "slow")


def test_init_containers_run_first_in_order_and_to_the_end(lab: LabProcess) -> None:
    first = t.shell("sleep 0.2; echo one > /room/order", name="first")
    second = t.shell("cat /room/order && echo two >> /room/order", name="second")
    main = t.shell("cat /room/order; exit 0")
    mount = {"volumeMounts": [{"name": "room", "mountPath": "/room"}]}
    apply(
        lab,
        t.pod(
            "job", {**main, **mount}, initContainers=[{**first, **mount}, {**second, **mount}],
            volumes=[{"name": "room", "emptyDir": {}}], restartPolicy="Never",
        ),
        t.pod("broken", t.shell("exit 0"), initContainers=[t.shell("exit 7", name="no")],
              restartPolicy="Never"),
    )  # fmt: skip
    lab.wait("pod/job", ".status.phase", "Succeeded")
    assert lab.kubectl("logs", "job") == "one\ntwo\n"
    assert "Completed" in lab.kubectl("get", "pod", "job")
    lab.wait("pod/broken", ".status.phase", "Failed")
    assert "Init:Error" in lab.kubectl("get", "pod", "broken")
    lab.kubectl("delete", "pod", "job", "broken")


def test_a_native_sidecar_runs_beside_and_ends_last(lab: LabProcess) -> None:
    beside = t.shell(
        "trap 'exit 0' TERM; echo up > /room/sidecar; while :; do sleep 0.1; done", name="beside",
        restartPolicy="Always",
        startupProbe={"exec": {"command": ["test", "-e", "/room/sidecar"]}, "periodSeconds": 1},
        volumeMounts=[{"name": "room", "mountPath": "/room"}],
    )  # fmt: skip
    main = t.shell("cat /room/sidecar", volumeMounts=[{"name": "room", "mountPath": "/room"}])
    apply(
        lab,
        t.pod("pair", main, initContainers=[beside], restartPolicy="Never",
              volumes=[{"name": "room", "emptyDir": {}}]),
    )  # fmt: skip
    lab.wait("pod/pair", ".status.phase", "Succeeded")
    status = lab.get("pod", "pair")["status"]
    assert status["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 0
    assert lab.kubectl("logs", "pair", "-c", "main") == "up\n"
    lab.kubectl("delete", "pod", "pair")


# ------------------------------------------------------------------------------ what cannot be run


def test_an_image_that_nobody_knows_is_told_with_what_to_do(lab: LabProcess) -> None:
    apply(lab, t.pod("strange", {"name": "main", "image": "example.org/strange:1"}))
    lab.wait("pod/strange", ".status.containerStatuses[0].state.waiting.reason", "ImagePullBackOff")
    waiting = lab.get("pod", "strange")["status"]["containerStatuses"][0]["state"]["waiting"]
    assert "add it to `images` of the topology" in waiting["message"]
    lab.kubectl("delete", "pod", "strange")


def test_a_program_that_is_not_there_is_told(lab: LabProcess) -> None:
    apply(lab, t.pod("absent", {"name": "main", "image": "x", "command": ["/no/such/program"]}))
    lab.wait("pod/absent", ".status.containerStatuses[0].lastState.terminated.reason", "StartError")
    last = lab.get("pod", "absent")["status"]["containerStatuses"][0]["lastState"]["terminated"]
    assert last["exitCode"] == 128
    assert "'/no/such/program'" in last["message"]
    lab.kubectl("delete", "pod", "absent")


def test_missing_configuration_is_waited_for(lab: LabProcess) -> None:
    reference = {"configMapKeyRef": {"name": "later", "key": "value"}}
    container = t.container(
        env=[{"name": "PORT", "value": "8080"}, {"name": "VALUE", "valueFrom": reference}]
    )
    apply(lab, t.pod("patient", container))
    reason = ".status.containerStatuses[0].state.waiting.reason"
    lab.wait("pod/patient", reason, "CreateContainerConfigError")
    waiting = lab.get("pod", "patient")["status"]["containerStatuses"][0]["state"]["waiting"]
    assert waiting["message"] == 'configmap "later" not found'
    apply(lab, t.config("later", value="there"))
    lab.kubectl("wait", "pod/patient", "--for=condition=Ready", "--timeout=30s")
    assert inside(lab, "patient", "printenv", "VALUE") == "there\n"
    lab.kubectl("delete", "pod/patient", "configmap/later")


def test_a_pod_that_fits_no_node_stays_and_says_why(lab: LabProcess) -> None:
    apply(lab, t.pod("picky", t.shell("exit 0"), nodeSelector={"disk": "fast"}))
    lab.wait("pod/picky", ".status.conditions[0].reason", "Unschedulable")
    lab.kubectl("delete", "pod", "picky")


# -------------------------------------------------------------------------------------- how it ends


def test_a_pod_is_asked_first_and_killed_when_its_grace_is_over(lab: LabProcess) -> None:
    polite = t.shell(
        "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done",
        lifecycle={"preStop": {"exec": {"command": ["sh", "-c", "echo hook >> /room/told"]}}},
        volumeMounts=[{"name": "room", "mountPath": "/room"}],
    )
    room = {"name": "room", "hostPath": {"path": str(lab.state)}}
    apply(
        lab,
        t.pod("polite", polite, volumes=[room]),
        t.pod("stubborn", t.shell("trap '' TERM; echo up; while :; do sleep 0.05; done"),
              terminationGracePeriodSeconds=1),
    )  # fmt: skip
    for name in ("polite", "stubborn"):
        lab.kubectl("wait", f"pod/{name}", "--for=condition=Ready", "--timeout=30s")
    following = subprocess.Popen(
        lab.command("logs", "-f", "polite"), stdout=subprocess.PIPE, text=True
    )
    assert following.stdout is not None
    assert following.stdout.readline() == "up\n"  # it has found the pod
    lab.kubectl("delete", "pod", "polite", "stubborn", "--timeout=40s")
    assert following.communicate(timeout=30)[0] == "bye\n"
    assert (lab.state / "told").read_text() == "hook\n"
    (lab.state / "told").unlink()


def test_a_pod_deleted_by_force_is_gone_at_once(lab: LabProcess) -> None:
    apply(lab, t.pod("forced", t.container()))
    lab.kubectl("wait", "pod/forced", "--for=condition=Ready", "--timeout=30s")
    ip = lab.get("pod", "forced")["status"]["podIP"]
    other = name_of(echo_pods(lab)[0])
    assert fetch(lab, other, f"http://{ip}:8080/") == "200"
    lab.kubectl("delete", "pod", "forced", "--force", "--grace-period=0")
    apply(lab, t.pod("next", t.container()))
    lab.kubectl("wait", "pod/next", "--for=condition=Ready", "--timeout=30s")
    assert "forced" not in {pod["name"] for pod in lab.status["clusters"][0]["pods"]}
    gone = lab.try_kubectl("exec", other, "--", "python3", "-c", FETCH, f"http://{ip}:8080/")
    assert gone.returncode == 1
    lab.kubectl("delete", "pod", "next")


def test_a_control_plane_that_is_killed_comes_back_and_pods_do_not_notice(
    tmp_path: Path,
) -> None:
    cluster = t.cluster(1, "east", "flat", "apps") | {"server": {}}  # objects outlive the process
    topology = {"clusters": [cluster], "networks": [{"name": "flat", "cidr": "172.17.1.0/24"}]}
    path = t.write(tmp_path, topology, apps=[t.pod("steady", t.container())])
    with LabProcess(tmp_path / "state", path) as lab:
        lab.kubectl("wait", "pod/steady", "--for=condition=Ready", "--timeout=30s")
        before = lab.get("pod", "steady")["status"]
        lab.cli("exec", "steady", "--", "kill", "-9", str(lab.status["clusters"][0]["serverPid"]))
        apply_again = json.dumps(t.pod("fresh", t.container()))
        lab.kubectl("wait", "node/east-node", "--for=condition=Ready", "--timeout=30s")
        lab.kubectl("apply", "-f", "-", stdin=apply_again)
        lab.kubectl("wait", "pod/fresh", "--for=condition=Ready", "--timeout=30s")
        after = lab.get("pod", "steady")["status"]
        assert (after["podIP"], after["startTime"]) == (before["podIP"], before["startTime"])
        assert after["containerStatuses"][0]["restartCount"] == 0
        assert lab.stop(signal.SIGTERM)[0] == 0
