#!/usr/bin/env python3
"""The chart, rendered by Helm and checked without a cluster.

    run.py --helm PATH [--update]

For every values file in cases/: `helm lint --strict`, `helm template` equal to golden/ (--update writes it), every object
valid for the oldest and the newest Kubernetes that the chart is for, and every name that an object uses defined by
another. Then values that must be refused, and the notes. The manifests in examples/kubernetes are checked the same way.
Needs the packages kubernetes-validate, cloudcoil-models-cert-manager and cloudcoil-models-prometheus-operator. The last
line is `N passed, N failed`; exit code 0, or 1 if a check failed.
"""
import argparse
import difflib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import kubernetes_validate
import yaml
from cloudcoil.models.cert_manager import v1 as cert_manager
from cloudcoil.models.prometheus_operator import v1 as prometheus_operator

HERE = Path(__file__).resolve().parent
CHART = HERE.parent / "kthena-router"
CRDS = CHART / "crds"
EXAMPLES = HERE.parent.parent / "examples" / "kubernetes"
NAMESPACE = "kthena"
OUR_API = "networking.serving.volcano.sh/v1alpha1"
# The chart's kubeVersion, and the newest that the schemas know.
KUBERNETES = "1.30", kubernetes_validate.latest_version()
CUSTOM = {
    ("cert-manager.io/v1", "Certificate"): cert_manager.Certificate,
    ("cert-manager.io/v1", "Issuer"): cert_manager.Issuer,
    ("monitoring.coreos.com/v1", "ServiceMonitor"): prometheus_operator.ServiceMonitor,
}
# Values, and a part of what Helm says about them.
REFUSED = [
    ("a feature that is not there", {"fairness": {"enabled": True}}, "fairness/enabled': value must be false"),
    ("session boost", {"sessionBoost": {"enabled": True}}, "sessionBoost/enabled': value must be false"),
    ("the Gateway API", {"gatewayAPI": {"enabled": True}}, "gatewayAPI/enabled': value must be false"),
    ("metrics on the inference port", {"metrics": {"exposeOnRouterPort": True}}, "exposeOnRouterPort': value must be false"),
    ("a misspelled value", {"replica": 2}, "additional properties 'replica' not allowed"),
    ("a port that is none", {"port": 0}, "port': minimum: got 0, want 1"),
    ("a duration without a unit", {"drainTimeout": "300"}, "drainTimeout': '300' does not match pattern"),
    ("a weight of 0", {"routerConfiguration": {"scheduler": {"plugins": {"Score": {"enabled": [
        {"name": "prefix-cache", "weight": 0}]}}}}}, "weight': minimum: got 0, want 1"),
    ("certificate files in two folders", {"webhook": {"tls": {"keyFile": "/etc/keys/tls.key"}}}, "must be in one folder"),
    ("a manual certificate without its CA", {"global": {"certManagementMode": "manual"}}, "global.webhook.caBundle must be set"),
    ("a certificate for no name", {"global": {"certManagementMode": "cert-manager"}, "tls": {"enabled": True}},
     "kthenaRouter.tls.dnsName must be set"),
    ("an unknown mode", {"global": {"certManagementMode": "magic"}}, "certManagementMode': value must be one of"),
]


def helm(*arguments):
    done = subprocess.run([OPTIONS.helm, *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise AssertionError(done.stderr.strip() or done.stdout.strip())
    return done.stdout


def template(chart, *arguments):
    return helm("template", "kthena-router", chart, "--namespace", NAMESPACE, "--kube-version", KUBERNETES[1], *arguments)


def name_of(thing):
    return f"{thing['kind']} {thing['metadata']['name']}"


def schema(thing):
    """Fails unless the object has only fields of its kind, each of its type."""
    kind = thing["apiVersion"], thing["kind"]
    if kind in CUSTOM:
        model = CUSTOM[kind].model_validate(thing)
        # What the model does not know is not in what it writes.
        known = model.model_dump(by_alias=True, exclude_unset=True, mode="json")
        assert known == thing, f"{name_of(thing)}: unknown fields:\n{difference(yaml.dump(known), yaml.dump(thing))}"
        return
    for version in KUBERNETES:
        try:
            kubernetes_validate.validate(thing, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            path = ".".join(map(str, error.path))
            raise AssertionError(f"{name_of(thing)}, Kubernetes {version}: {path}: {error.message}") from None


def difference(wanted, got):
    return "\n".join(difflib.unified_diff(wanted.splitlines(), got.splitlines(), "wanted", "got", lineterm="", n=2))


class Objects:
    """Objects of one installation, by kind and name."""

    def __init__(self, text):
        self.all = [thing for thing in yaml.safe_load_all(text) if thing]
        names = [(t["kind"], t["metadata"].get("namespace"), t["metadata"]["name"]) for t in self.all]
        assert len(names) == len(set(names)), f"an object is there twice: {sorted(names)}"

    def of(self, kind):
        return [thing for thing in self.all if thing["kind"] == kind]

    def named(self, kind, name):
        found = [thing for thing in self.of(kind) if thing["metadata"]["name"] == name]
        assert found, f"there is no {kind} {name}"
        return found[0]


def selects(selector, labels):
    return bool(selector) and selector.items() <= labels.items()


def references(objects):
    """Fails unless every name that an object uses is defined by another, or must be made by a person first."""
    deployment = objects.named("Deployment", "kthena-router")
    template_ = deployment["spec"]["template"]
    labels, pod = template_["metadata"]["labels"], template_["spec"]
    container = pod["containers"][0]
    ports = {p["name"]: p["containerPort"] for p in container["ports"]}
    assert selects(deployment["spec"]["selector"]["matchLabels"], labels)
    objects.named("ServiceAccount", pod["serviceAccountName"])

    for service in objects.of("Service"):
        assert selects(service["spec"]["selector"], labels), name_of(service)
        for port in service["spec"]["ports"]:
            assert port["targetPort"] in ports, f"{name_of(service)}: the container has no port {port['targetPort']}"
    for probe in "livenessProbe", "readinessProbe":
        assert container[probe]["httpGet"]["port"] in ports

    volumes = {v["name"]: v for v in pod["volumes"]}
    mounts = {m["name"]: m for m in container["volumeMounts"]}
    assert mounts.keys() == volumes.keys(), "a volume without a mount, or the other way round"
    config = objects.named("ConfigMap", volumes["router-config"]["configMap"]["name"])
    assert mounts["router-config"]["subPath"] in config["data"]

    flags = dict(a.removeprefix("--").split("=", 1) for a in container["args"])
    assert {int(flags[f]) for f in ("port", "metrics-port", "debug-port")} <= set(ports.values())
    for flag, volume in (("webhook-tls-cert-file", "webhook-certs"), ("webhook-tls-private-key-file", "webhook-certs"),
                         ("tls-cert", "router-tls"), ("tls-key", "router-tls")):
        if flag in flags:
            assert str(Path(flags[flag]).parent) == mounts[volume]["mountPath"], flag
            items = volumes[volume]["secret"].get("items")
            assert items is None or Path(flags[flag]).name in [i["path"] for i in items], flag
    assert pod["terminationGracePeriodSeconds"] >= 300 + container["lifecycle"]["preStop"]["sleep"]["seconds"]

    for binding in objects.of("RoleBinding") + objects.of("ClusterRoleBinding"):
        role = objects.named(binding["roleRef"]["kind"], binding["roleRef"]["name"])
        assert role["metadata"].get("namespace") == binding["metadata"].get("namespace"), name_of(binding)
        assert [s["name"] for s in binding["subjects"]] == [pod["serviceAccountName"]]
    for role in objects.of("Role") + objects.of("ClusterRole"):
        for rule in role["rules"]:
            assert "*" not in rule["verbs"] + rule["resources"] + rule["apiGroups"], name_of(role)
            # Without a name a Secret can only be made; all others of the namespace stay unread.
            assert "secrets" not in rule["resources"] or "resourceNames" in rule or rule["verbs"] == ["create"], name_of(role)

    for budget in objects.of("PodDisruptionBudget"):
        assert selects(budget["spec"]["selector"]["matchLabels"], labels)
    for scaler in objects.of("HorizontalPodAutoscaler"):
        objects.named("Deployment", scaler["spec"]["scaleTargetRef"]["name"])
        assert "replicas" not in deployment["spec"], "the Deployment would undo what the autoscaler did"
    for monitor in objects.of("ServiceMonitor"):
        service = objects.named("Service", "kthena-router-metrics")
        assert selects(monitor["spec"]["selector"]["matchLabels"], service["metadata"]["labels"])
        assert monitor["spec"]["endpoints"][0]["port"] in [p["name"] for p in service["spec"]["ports"]]

    assert bool(objects.of("ValidatingWebhookConfiguration")) == (flags["enable-webhook"] == "true")
    for configuration in objects.of("ValidatingWebhookConfiguration"):
        for webhook in configuration["webhooks"]:
            target = webhook["clientConfig"]["service"]
            service = objects.named("Service", target["name"])
            assert target["port"] in [p["port"] for p in service["spec"]["ports"]]
            assert target["name"] == flags["webhook-service-name"]
        certificate = configuration["metadata"].get("annotations", {}).get("cert-manager.io/inject-ca-from")
        if certificate:
            namespace, _, name = certificate.partition("/")
            assert namespace == NAMESPACE
            assert objects.named("Certificate", name)["spec"]["secretName"] == flags["cert-secret-name"]
    for certificate in objects.of("Certificate"):
        issuer = certificate["spec"]["issuerRef"]
        if issuer["kind"] == "Issuer":
            objects.named("Issuer", issuer["name"])


def hardened(objects):
    """Fails unless the pod keeps to the Restricted Pod Security Standard, with a read-only root file system."""
    pod = objects.named("Deployment", "kthena-router")["spec"]["template"]["spec"]
    container = pod["containers"][0]
    assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["runAsUser"] == 65532
    assert pod["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault"
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def case(path):
    helm("lint", "--strict", "--quiet", "--kube-version", KUBERNETES[1], "--values", path, CHART)
    text = template(CHART, "--values", path)
    objects = Objects(text)
    for thing in objects.all:
        schema(thing)
    references(objects)
    hardened(objects)
    golden = HERE / "golden" / path.name
    if OPTIONS.update:
        golden.write_text(text, encoding="utf-8")
    wanted = golden.read_text(encoding="utf-8") if golden.exists() else ""
    assert text == wanted, f"not as in {golden.name} (--update writes it):\n{difference(wanted, text)}"


def refused(values, wanted):
    values = {"global": values.get("global", {}), "kthenaRouter": {k: v for k, v in values.items() if k != "global"}}
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.safe_dump(values, file)
        file.flush()
        try:
            template(CHART, "--values", file.name)
        except AssertionError as error:
            assert wanted in str(error), str(error)
        else:
            raise AssertionError("it was accepted")


def changed_configuration_rolls_the_pods():
    def checksum(*values):
        pods = Objects(template(CHART, *values)).named("Deployment", "kthena-router")["spec"]["template"]
        return pods["metadata"]["annotations"]["checksum/config"]
    assert checksum() == checksum("--set", "kthenaRouter.replicas=2")
    assert checksum() != checksum("--set", "kthenaRouter.routerConfiguration.auth.issuer=x")


def disabled_renders_nothing():
    assert not Objects(template(CHART, "--set", "kthenaRouter.enabled=false")).all


def notes():
    # Helm prints them after an installation only; as a template of a copy they can be seen without a cluster.
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "kthena-router"
        shutil.copytree(CHART, copy)
        (copy / "templates" / "shown.yaml").write_text(
            'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shown}\ndata:\n  notes: |\n'
            '    {{- include (print $.Template.BasePath "/NOTES.txt") . | nindent 4 }}\n', encoding="utf-8")

        def shown(*values):
            text = template(copy, "--show-only", "templates/shown.yaml", *values)
            return yaml.safe_load(text)["data"]["notes"]
        usual = shown()
        for line in ("kubectl port-forward svc/kthena-router-metrics 9090:9090 -n kthena",
                     "kubectl rollout restart deployment/kthena-router -n kthena",
                     "kubectl port-forward svc/kthena-router 8080:80 -n kthena"):
            assert line in usual, usual
        assert "Several replicas" not in usual
        assert "Several replicas" in shown("--set", "kthenaRouter.replicas=2")
        assert "webhook is off" in shown("--set", "kthenaRouter.webhook.enabled=false")
        assert "https://localhost" in shown("--set", "kthenaRouter.tls.enabled=true")


def plain_file(path):
    things = [thing for thing in yaml.safe_load_all(path.read_text(encoding="utf-8")) if thing]
    assert things, "no object"
    for thing in things:
        if thing["apiVersion"] != OUR_API:  # ours are checked by `kthena-router validate`
            schema(thing)


def main():
    checks = [(f"case {p.stem}", lambda p=p: case(p)) for p in sorted((HERE / "cases").glob("*.yaml"))]
    checks += [(f"refused: {what}", lambda v=values, w=wanted: refused(v, w)) for what, values, wanted in REFUSED]
    checks += [(f.__name__, f) for f in (changed_configuration_rolls_the_pods, disabled_renders_nothing, notes)]
    checks += [(f"{p.parent.name}/{p.name}", lambda p=p: plain_file(p))
               for folder in (CRDS, EXAMPLES) for p in sorted(folder.rglob("*.yaml"))]
    assert len({p.stem for p in (HERE / "cases").glob("*.yaml")} ^ {p.stem for p in (HERE / "golden").glob("*.yaml")}) == 0 \
        or OPTIONS.update, "cases and golden files are not the same set"
    passed = failed = 0
    for name, check in checks:
        try:
            check()
            passed += 1
            print(f"ok    {name}", flush=True)
        except Exception as error:  # a check may fail in any way
            failed += 1
            print(f"FAIL  {name}: {error if isinstance(error, AssertionError) else repr(error)}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--helm", required=True, help="the program")
    parser.add_argument("--update", action="store_true", help="write the golden files")
    OPTIONS = parser.parse_args()
    sys.exit(main())
