// Command client-go performs the typical steps of an operator in Go against an API server: informers, apply, patches,
// leader election, events, discovery. It prints one line per step and exits with 1 at the first failure.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/retry"
)

const namespace = "client-go"

type clients struct {
	config   *rest.Config
	typed    kubernetes.Interface
	dynamic  dynamic.Interface
	metadata metadata.Interface
}

type step struct {
	name string
	run  func(context.Context, clients) error
}

var steps = []step{
	{"discovery", discovery},
	{"informer", informer},
	{"conflict", conflict},
	{"apply", apply},
	{"protobuf", protobuf},
	{"custom resources", customResources},
	{"events", events},
	{"leader election", leaderElection},
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "which API server")
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	exitOn("kubeconfig", err)
	config.QPS = -1
	all := clients{
		config:   config,
		typed:    kubernetes.NewForConfigOrDie(config),
		dynamic:  dynamic.NewForConfigOrDie(config),
		metadata: metadata.NewForConfigOrDie(config),
	}
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	_, err = all.typed.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	exitOn("namespace", err)
	for _, step := range steps {
		exitOn(step.name, step.run(ctx, all))
		fmt.Println(step.name)
	}
}

func exitOn(what string, err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", what, err)
		os.Exit(1)
	}
}

func discovery(_ context.Context, c clients) error {
	groups, resources, err := c.typed.Discovery().ServerGroupsAndResources()
	if err != nil {
		return err
	}
	if len(groups) < 3 || len(resources) < 3 {
		return fmt.Errorf("%d groups and %d lists of resources", len(groups), len(resources))
	}
	_, err = c.typed.Discovery().OpenAPISchema()
	return err
}

// An informer receives existing objects, additions, changes and deletions, and nothing outside of its selector.
func informer(ctx context.Context, c clients) error {
	maps := c.typed.CoreV1().ConfigMaps(namespace)
	create := func(name string, labels map[string]string) error {
		_, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Data: map[string]string{"n": "0"}}, metav1.CreateOptions{})
		return err
	}
	mine := map[string]string{"app": "informer"}
	for i := range 120 {
		if err := create(fmt.Sprintf("before-%d", i), mine); err != nil {
			return err
		}
	}
	var added, updated, deleted atomic.Int32
	factory := informers.NewSharedInformerFactoryWithOptions(c.typed, 0,
		informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = "app=informer"; options.Limit = 50 }))
	shared := factory.Core().V1().ConfigMaps()
	_, err := shared.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { added.Add(1) },
		UpdateFunc: func(any, any) { updated.Add(1) },
		DeleteFunc: func(any) { deleted.Add(1) },
	})
	if err != nil {
		return err
	}
	stop := untilReturn(ctx)
	defer stop.cancel()
	factory.Start(stop.done)
	if !cache.WaitForCacheSync(stop.done, shared.Informer().HasSynced) {
		return errors.New("did not sync")
	}
	if err := create("after", mine); err != nil {
		return err
	}
	if err := create("other", map[string]string{"app": "other"}); err != nil {
		return err
	}
	patch := []byte(`{"data":{"n":"1"}}`)
	if _, err := maps.Patch(ctx, "before-0", types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return err
	}
	// Losing its label, an object leaves the informer.
	if _, err := maps.Patch(ctx, "before-1", types.MergePatchType, []byte(`{"metadata":{"labels":null}}`), metav1.PatchOptions{}); err != nil {
		return err
	}
	if err := maps.Delete(ctx, "before-2", metav1.DeleteOptions{}); err != nil {
		return err
	}
	return eventually(ctx, func() error {
		all, err := shared.Lister().ConfigMaps(namespace).List(labels.Everything())
		if err != nil {
			return err
		}
		if len(all) != 119 || added.Load() != 121 || updated.Load() != 1 || deleted.Load() != 2 {
			return fmt.Errorf("holds %d, saw %d added, %d updated, %d deleted", len(all), added.Load(), updated.Load(), deleted.Load())
		}
		return nil
	})
}

func conflict(ctx context.Context, c clients) error {
	maps := c.typed.CoreV1().ConfigMaps(namespace)
	stale, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "conflict"}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if _, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "conflict"}}, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("created twice: %v", err)
	}
	fresh := stale.DeepCopy()
	fresh.Data = map[string]string{"a": "1"}
	if _, err := maps.Update(ctx, fresh, metav1.UpdateOptions{}); err != nil {
		return err
	}
	stale.Data = map[string]string{"a": "2"}
	if _, err := maps.Update(ctx, stale, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		return fmt.Errorf("a stale update: %v", err)
	}
	if _, err := maps.Get(ctx, "missing", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return fmt.Errorf("a missing one: %v", err)
	}
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		latest, err := maps.Get(ctx, "conflict", metav1.GetOptions{})
		if err != nil {
			return err
		}
		latest.Data = map[string]string{"a": "3"}
		_, err = maps.Update(ctx, latest, metav1.UpdateOptions{})
		return err
	})
}

func apply(ctx context.Context, c clients) error {
	maps := c.typed.CoreV1().ConfigMaps(namespace)
	by := func(manager string, force bool) metav1.ApplyOptions {
		return metav1.ApplyOptions{FieldManager: manager, Force: force}
	}
	want := applycorev1.ConfigMap("applied", namespace).WithData(map[string]string{"color": "red"})
	if _, err := maps.Apply(ctx, want, by("one", false)); err != nil {
		return err
	}
	other := applycorev1.ConfigMap("applied", namespace).WithData(map[string]string{"color": "blue"})
	if _, err := maps.Apply(ctx, other, by("two", false)); !apierrors.IsConflict(err) {
		return fmt.Errorf("no conflict: %v", err)
	}
	if _, err := maps.Apply(ctx, other, by("two", true)); err != nil {
		return err
	}
	live, err := maps.Get(ctx, "applied", metav1.GetOptions{})
	if err != nil {
		return err
	}
	extracted, err := applycorev1.ExtractConfigMap(live, "two")
	if err != nil {
		return err
	}
	if extracted.Data["color"] != "blue" {
		return fmt.Errorf("manager two owns %v", extracted.Data)
	}
	deployment := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web"},
		"spec": map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"app": "web"}},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "web", "image": "example.test/web:1"}}},
			},
		},
	}}
	deployments := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	if _, err := c.dynamic.Resource(deployments).Namespace(namespace).Apply(ctx, "web", deployment, by("one", false)); err != nil {
		return err
	}
	scale, err := c.typed.AppsV1().Deployments(namespace).GetScale(ctx, "web", metav1.GetOptions{})
	if err != nil {
		return err
	}
	scale.Spec.Replicas = 3
	if _, err := c.typed.AppsV1().Deployments(namespace).UpdateScale(ctx, "web", scale, metav1.UpdateOptions{}); err != nil {
		return err
	}
	typed, err := c.typed.AppsV1().Deployments(namespace).Get(ctx, "web", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if *typed.Spec.Replicas != 3 || typed.Spec.Strategy.Type != "RollingUpdate" {
		return fmt.Errorf("%d replicas, strategy %q", *typed.Spec.Replicas, typed.Spec.Strategy.Type)
	}
	return nil
}

// Typed clients send protobuf; the same object sent as JSON must be stored the same.
func protobuf(ctx context.Context, c clients) error {
	config := rest.CopyConfig(c.config)
	config.ContentType, config.AcceptContentTypes = "application/json", "application/json"
	asJSON, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	pod := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "proto"}, Annotations: map[string]string{"empty": ""}},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Name: "main", Image: "example.test/main:1", Command: []string{"run", ""},
				Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
				Env: []corev1.EnvVar{
					{Name: "PLAIN", Value: "a b"},
					{Name: "KEY", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
						LocalObjectReference: corev1.LocalObjectReference{Name: "s"}, Key: "k", Optional: new(false)}}},
				},
				Resources:       corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("250m"), "memory": resource.MustParse("1.5Gi")}},
				LivenessProbe:   &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromString("http")}}},
				SecurityContext: &corev1.SecurityContext{RunAsUser: new(int64(0)), Privileged: new(false)},
				VolumeMounts:    []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
			}},
			Volumes: []corev1.Volume{
				{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: resource.NewQuantity(1<<30, resource.BinarySI)}}},
			},
			TerminationGracePeriodSeconds: new(int64(0)),
			AutomountServiceAccountToken:  new(false),
		},
	}
	always := corev1.RestartPolicyOnFailure
	job := *pod.DeepCopy()
	job.Spec.RestartPolicy = always
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "proto"}}
	path := networkingv1.PathTypePrefix
	// Each creates an object by the client it is given and returns what the server made of it.
	makers := map[string]func(kubernetes.Interface, metav1.ObjectMeta) (any, error){
		"Deployment": func(k kubernetes.Interface, meta metav1.ObjectMeta) (any, error) {
			surge := intstr.FromString("10%")
			made, err := k.AppsV1().Deployments(namespace).Create(ctx, &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
				Replicas: new(int32(0)), Selector: selector, Template: pod,
				Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &surge}}}}, metav1.CreateOptions{})
			return made.Spec, err
		},
		"Job": func(k kubernetes.Interface, meta metav1.ObjectMeta) (any, error) {
			made, err := k.BatchV1().Jobs(namespace).Create(ctx, &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{
				Template: job, ManualSelector: new(true), Selector: selector, BackoffLimit: new(int32(0))}}, metav1.CreateOptions{})
			return made.Spec, err
		},
		"Service": func(k kubernetes.Interface, meta metav1.ObjectMeta) (any, error) {
			made, err := k.CoreV1().Services(namespace).Create(ctx, &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
				ClusterIP: corev1.ClusterIPNone, Selector: selector.MatchLabels,
				Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}, {Name: "b", Port: 81, TargetPort: intstr.FromString("http")}}[:1]}}, metav1.CreateOptions{})
			return made.Spec, err
		},
		"Secret": func(k kubernetes.Interface, meta metav1.ObjectMeta) (any, error) {
			made, err := k.CoreV1().Secrets(namespace).Create(ctx, &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"bytes": {0, 255, 10}}, Immutable: new(false)}, metav1.CreateOptions{})
			return made.Data, err
		},
		"PersistentVolumeClaim": func(k kubernetes.Interface, meta metav1.ObjectMeta) (any, error) {
			made, err := k.CoreV1().PersistentVolumeClaims(namespace).Create(ctx, &corev1.PersistentVolumeClaim{ObjectMeta: meta, Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: new(""),
				Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": resource.MustParse("1Gi")}}}}, metav1.CreateOptions{})
			return made.Spec, err
		},
		"Ingress": func(k kubernetes.Interface, meta metav1.ObjectMeta) (any, error) {
			made, err := k.NetworkingV1().Ingresses(namespace).Create(ctx, &networkingv1.Ingress{ObjectMeta: meta, Spec: networkingv1.IngressSpec{
				Rules: []networkingv1.IngressRule{{Host: "a.test", IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
					Paths: []networkingv1.HTTPIngressPath{{Path: "/", PathType: &path, Backend: networkingv1.IngressBackend{
						Service: &networkingv1.IngressServiceBackend{Name: "s", Port: networkingv1.ServiceBackendPort{Number: 80}}}}}}}}}}}, metav1.CreateOptions{})
			return made.Spec, err
		},
		"Role": func(k kubernetes.Interface, meta metav1.ObjectMeta) (any, error) {
			made, err := k.RbacV1().Roles(namespace).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}, ResourceNames: []string{"a"}}}}, metav1.CreateOptions{})
			return made.Rules, err
		},
	}
	for kind, create := range makers {
		name := strings.ToLower(kind)
		first, err := create(c.typed, metav1.ObjectMeta{Name: name + "-protobuf", Finalizers: []string{}})
		if err != nil {
			return fmt.Errorf("%s as protobuf: %w", kind, err)
		}
		second, err := create(asJSON, metav1.ObjectMeta{Name: name + "-json"})
		if err != nil {
			return fmt.Errorf("%s as JSON: %w", kind, err)
		}
		if !equality.Semantic.DeepEqual(first, second) {
			return fmt.Errorf("%s sent as protobuf became %+v, sent as JSON %+v", kind, first, second)
		}
	}
	return nil
}

var boats = schema.GroupVersionResource{Group: "harbor.test", Version: "v1", Resource: "boats"}

func customResources(ctx context.Context, c clients) error {
	crds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	crd := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "boats.harbor.test"},
		"spec": map[string]any{
			"group": "harbor.test", "scope": "Namespaced",
			"names": map[string]any{"plural": "boats", "kind": "Boat"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object",
					"properties": map[string]any{
						"spec": map[string]any{
							"type":                     "object",
							"properties":               map[string]any{"oars": map[string]any{"type": "integer"}},
							"x-kubernetes-validations": []any{map[string]any{"rule": "self.oars % 2 == 0", "message": "oars come in pairs"}},
						},
						"status": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
					},
				}},
			}},
		},
	}}
	if _, err := c.dynamic.Resource(crds).Create(ctx, crd, metav1.CreateOptions{}); err != nil {
		return err
	}
	boat := func(name string, oars int64) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "harbor.test/v1", "kind": "Boat", "metadata": map[string]any{"name": name}, "spec": map[string]any{"oars": oars},
		}}
	}
	fleet := c.dynamic.Resource(boats).Namespace(namespace)
	err := eventually(ctx, func() error { _, err := fleet.List(ctx, metav1.ListOptions{}); return err })
	if err != nil {
		return err
	}
	if _, err := fleet.Create(ctx, boat("lame", 3), metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		return fmt.Errorf("a boat with three oars: %v", err)
	}
	stop := untilReturn(ctx)
	defer stop.cancel()
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(c.dynamic, 0, namespace, nil)
	shared := factory.ForResource(boats)
	shared.Informer()
	factory.Start(stop.done)
	for i := range 30 {
		if _, err := fleet.Create(ctx, boat(fmt.Sprintf("boat-%d", i), 8), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	one, err := fleet.Get(ctx, "boat-3", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := unstructured.SetNestedField(one.Object, "afloat", "status", "phase"); err != nil {
		return err
	}
	if _, err := fleet.UpdateStatus(ctx, one, metav1.UpdateOptions{}); err != nil {
		return err
	}
	err = eventually(ctx, func() error {
		all, err := shared.Lister().List(labels.Everything())
		if err != nil {
			return err
		}
		seen, err := shared.Lister().ByNamespace(namespace).Get("boat-3")
		if err != nil {
			return err
		}
		phase, _, _ := unstructured.NestedString(seen.(*unstructured.Unstructured).Object, "status", "phase")
		if len(all) != 30 || phase != "afloat" {
			return fmt.Errorf("holds %d, boat-3 is %q", len(all), phase)
		}
		return nil
	})
	if err != nil {
		return err
	}
	partial, err := c.metadata.Resource(boats).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: 10})
	if err != nil {
		return err
	}
	if len(partial.Items) != 10 || partial.Continue == "" {
		return fmt.Errorf("a page of %d, continue %q", len(partial.Items), partial.Continue)
	}
	if err := fleet.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return err
	}
	return eventually(ctx, func() error {
		if n := len(shared.Informer().GetStore().List()); n != 0 {
			return fmt.Errorf("holds %d after all were deleted", n)
		}
		return nil
	})
}

func events(ctx context.Context, c clients) error {
	about, err := c.typed.CoreV1().ConfigMaps(namespace).Get(ctx, "applied", metav1.GetOptions{})
	if err != nil {
		return err
	}
	broadcaster := record.NewBroadcaster()
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: c.typed.CoreV1().Events(namespace)})
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "client-go-test"})
	for range 3 {
		recorder.Event(about, corev1.EventTypeNormal, "Rowed", "in time")
	}
	return eventually(ctx, func() error {
		found, err := c.typed.CoreV1().Events(namespace).Search(scheme.Scheme, about)
		if err != nil {
			return err
		}
		if len(found.Items) != 1 || found.Items[0].Count != 3 {
			return fmt.Errorf("%d events", len(found.Items))
		}
		return nil
	})
}

// Two candidates: one leads, and when it lets go the other does; never both.
func leaderElection(ctx context.Context, c clients) error {
	var leading atomic.Int32
	var order []string
	turn := make(chan string, 4)
	candidate := func(ctx context.Context, id string) {
		leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock: &resourcelock.LeaseLock{
				LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: "leader"},
				Client:     c.typed.CoordinationV1(),
				LockConfig: resourcelock.ResourceLockConfig{Identity: id},
			},
			LeaseDuration: 4 * time.Second, RenewDeadline: 3 * time.Second, RetryPeriod: 200 * time.Millisecond,
			ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(ctx context.Context) {
					if leading.Add(1) != 1 {
						turn <- "two leaders"
					}
					turn <- id
					<-ctx.Done()
				},
				OnStoppedLeading: func() {},
			},
		})
	}
	first, stopFirst := context.WithCancel(ctx)
	second, stopSecond := context.WithCancel(ctx)
	defer stopSecond()
	go candidate(first, "first")
	order = append(order, <-turn)
	go candidate(second, "second")
	time.Sleep(600 * time.Millisecond)
	leading.Add(-1)
	stopFirst()
	select {
	case id := <-turn:
		order = append(order, id)
	case <-time.After(20 * time.Second):
		return errors.New("nobody took over")
	}
	if fmt.Sprint(order) != "[first second]" {
		return fmt.Errorf("led in the order %v", order)
	}
	return nil
}

type stopper struct {
	done   <-chan struct{}
	cancel context.CancelFunc
}

func untilReturn(ctx context.Context) stopper {
	child, cancel := context.WithCancel(ctx)
	return stopper{child.Done(), cancel}
}

func eventually(ctx context.Context, check func() error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil && last != nil {
		return last
	}
	return err
}
