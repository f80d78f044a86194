"""Typical steps of a user of the official Python client, against the API server of the kubeconfig in argv[1].

Prints one line per step; ends with a traceback at the first failure.
"""

import sys
import threading

from kubernetes import client, config, dynamic, utils, watch
from kubernetes.client.rest import ApiException

config.load_kube_config(sys.argv[1])
core, apps, custom = client.CoreV1Api(), client.AppsV1Api(), client.CustomObjectsApi()
NAMESPACE = "python"


def rejected(status, reason, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except ApiException as error:
        assert error.status == status, error
        assert reason in error.body, error.body
    else:
        raise AssertionError(f"{call.__name__} was not rejected")


core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=NAMESPACE)))
print("namespace")

seen = []
watching = threading.Event()


def follow():
    stream = watch.Watch().stream(core.list_namespaced_config_map, NAMESPACE, label_selector="app=boat", timeout_seconds=20)
    watching.set()
    for event in stream:
        seen.append((event["type"], event["object"].metadata.name))
        if event["type"] == "DELETED":
            break


follower = threading.Thread(target=follow)
follower.start()
watching.wait()
body = client.V1ConfigMap(metadata=client.V1ObjectMeta(name="boat", labels={"app": "boat"}), data={"oars": "8"})
core.create_namespaced_config_map(NAMESPACE, body)
rejected(409, "AlreadyExists", core.create_namespaced_config_map, NAMESPACE, body)
core.patch_namespaced_config_map("boat", NAMESPACE, {"data": {"oars": "4"}})
assert core.read_namespaced_config_map("boat", NAMESPACE).data == {"oars": "4"}
core.delete_namespaced_config_map("boat", NAMESPACE)
rejected(404, "NotFound", core.read_namespaced_config_map, "boat", NAMESPACE)
follower.join(20)
# Whether the watch saw the change depends on where it started; it saw the deletion in any case.
assert seen[-1] == ("DELETED", "boat"), seen
print("config map, watched")

utils.create_from_dict(
    client.ApiClient(),
    {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": NAMESPACE},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "example.test/web:1"}]}},
        },
    },
)
apps.patch_namespaced_deployment_scale("web", NAMESPACE, {"spec": {"replicas": 5}})
deployment = apps.read_namespaced_deployment("web", NAMESPACE)
assert deployment.spec.replicas == 5 and deployment.metadata.generation == 2, deployment.spec
rejected(
    422,
    "field is immutable",
    apps.patch_namespaced_deployment,
    "web",
    NAMESPACE,
    {"spec": {"selector": {"matchLabels": {"app": "other"}}, "template": {"metadata": {"labels": {"app": "other"}}}}},
)
print("deployment")

boat = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"oars": {"type": "integer", "minimum": 1}}}}}
client.ApiextensionsV1Api().create_custom_resource_definition(
    {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "skiffs.python.test"},
        "spec": {
            "group": "python.test",
            "scope": "Namespaced",
            "names": {"plural": "skiffs", "kind": "Skiff"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": boat}}],
        },
    }
)
for _ in watch.Watch().stream(client.ApiextensionsV1Api().list_custom_resource_definition, timeout_seconds=10):
    conditions = client.ApiextensionsV1Api().read_custom_resource_definition("skiffs.python.test").status.conditions or []
    if any(condition.type == "Established" and condition.status == "True" for condition in conditions):
        break
skiff = {"apiVersion": "python.test/v1", "kind": "Skiff", "metadata": {"name": "one"}, "spec": {"oars": 2}}
skiffs = dynamic.DynamicClient(client.ApiClient()).resources.get(api_version="python.test/v1", kind="Skiff")
skiffs.create(skiff, namespace=NAMESPACE)
assert [item.metadata.name for item in skiffs.get(namespace=NAMESPACE).items] == ["one"]
skiff = {**skiff, "metadata": {"name": "two"}, "spec": {"oars": 0}}
rejected(422, "spec.oars", custom.create_namespaced_custom_object, "python.test", "v1", NAMESPACE, "skiffs", skiff)
print("custom resources")

allowed = client.AuthorizationV1Api().create_self_subject_access_review(
    client.V1SelfSubjectAccessReview(
        spec=client.V1SelfSubjectAccessReviewSpec(
            resource_attributes=client.V1ResourceAttributes(verb="delete", resource="pods", namespace=NAMESPACE)
        )
    )
)
assert allowed.status.allowed, allowed
core.create_namespaced_service_account(NAMESPACE, client.V1ServiceAccount(metadata=client.V1ObjectMeta(name="robot")))
token = core.create_namespaced_service_account_token(
    "robot", NAMESPACE, client.AuthenticationV1TokenRequest(spec=client.V1TokenRequestSpec(audiences=[]))
)
assert token.status.token.count(".") == 2
print("access reviews")
