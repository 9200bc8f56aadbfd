"""A user's session with kubectl, by chapter: each line is a command after the word kubectl.

A chapter has its own namespace. The files of `-f` and `-k` are in the folder `files`. A comment above a command is the
reason why its output on a sandbox differs from that on a real cluster.
"""

from __future__ import annotations

CHAPTERS = {
    "deployment": """
        create deployment web --image=nginx:1.27 --replicas=2 --port=80
        rollout status deployment/web --timeout=60s
        get deployments
        get deployments -o wide
        get pods
        get pods -o wide
        get pods -o name
        get rs,deploy --show-labels
        get deployment web -o yaml
        get deployment web -o json
        get deployment web -o jsonpath={.spec.template.spec.containers[*].image}
        get pods -o custom-columns=PHASE:.status.phase,IMAGE:.spec.containers[0].image
        describe deployment web
        describe pods
        describe rs
        set image deployment/web nginx=nginx:1.28
        rollout status deployment/web --timeout=60s
        rollout history deployment/web
        rollout history deployment/web --revision=2
        rollout undo deployment/web
        rollout status deployment/web --timeout=60s
        rollout history deployment/web
        rollout pause deployment/web
        set env deployment/web COLOR=blue
        set resources deployment/web --limits=cpu=100m,memory=64Mi
        rollout undo deployment/web
        get deployment web
        rollout resume deployment/web
        rollout status deployment/web --timeout=60s
        rollout restart deployment/web
        rollout status deployment/web --timeout=60s
        set env deployment/web --list
        scale deployment/web --replicas=4
        wait --for=jsonpath={.status.readyReplicas}=4 deployment/web --timeout=60s
        scale deployment/web --replicas=1 --current-replicas=9
        expose deployment web --port=80
        get services web
        get service web -o yaml
        describe service web
        get endpointslices
        get endpoints web
        autoscale deployment/web --min=1 --max=3 --cpu=80%
        get hpa
        get all
        delete service web
        delete deployment web --cascade=foreground
        get pods
    """,
    "objects": """
        apply -f config.yaml
        apply -f config.yaml
        get configmaps settings -o yaml
        diff -f config-changed.yaml
        apply -f config-changed.yaml
        label configmap settings tier=front
        label configmap settings tier=back
        label configmap settings tier=back --overwrite
        label configmap settings tier-
        annotate configmap settings note=hello
        patch configmap settings -p {"data":{"size":"5"}}
        patch configmap settings --type=json -p [{"op":"remove","path":"/data/size"}]
        patch configmap settings --type=merge -p {"data":{"color":null}}
        patch configmap settings --type=json -p [{"op":"remove","path":"/data/none"}]
        get configmap settings -o jsonpath={.data}
        replace -f config.yaml
        create -f config.yaml
        create configmap other --from-literal=a=1 --dry-run=server -o yaml
        create secret generic key --from-literal=password=s3cr3t
        get secrets
        describe secret key
        get secret key -o yaml
        get configmaps --sort-by=.metadata.name
        get configmaps --field-selector=metadata.name=settings
        get configmaps -l tier
        describe configmap settings
        delete configmap settings --dry-run=server
        delete -f config.yaml
        get configmap settings
        delete configmap settings
        delete configmap settings --ignore-not-found
        apply --server-side -f config.yaml
        apply --server-side --field-manager=other -f config-changed.yaml
        apply --server-side --field-manager=other --force-conflicts -f config-changed.yaml
        get configmap settings -o yaml --show-managed-fields
        apply -k shop
        get configmaps,services -l app=shop
        delete -k shop
    """,
    "workloads": """
        run shell --image=busybox --restart=Never --labels=app=shell -- sleep 3600
        wait --for=condition=Ready pod/shell --timeout=60s
        get pod shell -o wide
        # A sandbox's pods have the events, container IDs and conditions of a kubelet; those of kwok do not.
        get pod shell -o yaml
        # Nothing runs in a pod, and each cluster has its own words for that.
        logs shell
        # Nothing runs in a pod, and each cluster has its own words for that.
        exec shell -- ls
        # A sandbox's pods have the events, container IDs and conditions of a kubelet; those of kwok do not.
        describe pod shell
        label pod shell env=test
        annotate pod shell owner=me
        get pods -l env=test --show-labels
        get pods -L env
        get pods --field-selector=status.phase=Running -o name
        get pods --field-selector=spec.nodeName=none
        delete pod shell
        create job once --image=busybox -- true
        wait --for=condition=Complete job/once --timeout=60s
        get jobs
        describe job once
        get job once -o yaml
        create cronjob nightly --image=busybox --schedule=@daily -- true
        apply -f workloads.yaml
        rollout status statefulset/db --timeout=60s
        rollout status daemonset/agent --timeout=60s
        get statefulsets
        get statefulsets -o wide
        get daemonsets
        get daemonset agent -o jsonpath={.status.observedGeneration}
        get pods -l app=db --sort-by=.metadata.name
        get cronjobs
        describe cronjob nightly
        create job now --from=cronjob/nightly
        wait --for=condition=Complete job/now --timeout=60s
        describe statefulset db
        # A sandbox writes each event of its own: it does not combine ten similar ones.
        describe daemonset agent
        scale statefulset/db --replicas=1
        get pods -l app=db
        rollout history statefulset/db
        rollout history daemonset/agent
        set image daemonset/agent agent=agent:2
        rollout status daemonset/agent --timeout=60s
        rollout history daemonset/agent
        rollout undo daemonset/agent
        rollout status daemonset/agent --timeout=60s
        # A sandbox's pods have the events, container IDs and conditions of a kubelet; those of kwok do not.
        events --for=pod/db-0
        get events --field-selector=involvedObject.kind=StatefulSet
        create pdb db --selector=app=db --min-available=1
        get pdb
        describe pdb db
        apply -f broken.yaml
        apply -f quota.yaml
        get resourcequota
        describe resourcequota
        get limitranges
        describe limitrange
        create configmap full --from-literal=a=1
        get ingress,networkpolicies
        describe ingress
        describe networkpolicy
        get all -o name
        delete -f workloads.yaml
        delete jobs --all
        top pods
        top nodes
    """,
    "access": """
        auth can-i create pods
        auth can-i create pods --as=jane
        auth can-i --list --as=jane
        create role reader --verb=get,list --resource=pods
        create rolebinding jane --role=reader --user=jane
        auth can-i list pods --as=jane
        auth can-i delete pods --as=jane
        auth can-i --list --as=jane
        get pods --as=jane
        get secrets --as=jane
        create deployment no --image=none --as=jane
        delete pods --all --as=jane
        create serviceaccount robot
        get serviceaccount robot -o yaml
        describe serviceaccount robot
        create token robot
        create rolebinding robot --clusterrole=view --serviceaccount=none:robot
        describe role reader
        describe rolebinding jane
        get roles,rolebindings -o wide
        auth whoami --as=jane --as-group=team
        auth whoami -o yaml --as=jane
        auth reconcile -f role.yaml
        get clusterrole view
        describe clusterrole view
        create secret docker-registry pull --docker-server=r --docker-username=u --docker-password=p
        create secret tls none --cert=none --key=none
        get secret pull -o jsonpath={.type}
        get pods -A --as=jane
        get nodes --as=jane
    """,
    "types": """
        version
        cluster-info
        api-resources --api-group=apps
        explain pods
        # The sandbox's descriptions of fields do not list the possible values.
        explain deployment.spec.strategy
        # The sandbox's descriptions of fields do not list the possible values.
        explain pods.spec.containers --recursive
        explain service.spec.none
        explain hpa --api-version=autoscaling/v2
        get none
        get pods none
        get pod/none service/none
        get --raw=/healthz
        get --raw=/readyz
        # A sandbox is one process and has no parts to list.
        get --raw=/livez?verbose
        # A sandbox was not built by Go, and writes JSON without spaces.
        get --raw=/version
        get --raw=/none
        # A sandbox is one process and has no components.
        get componentstatuses
        apply -f crd.yaml
        wait --for=condition=Established crd/boats.sea.example.com --timeout=60s
        get crd boats.sea.example.com
        describe crd boats.sea.example.com
        api-resources --api-group=sea.example.com
        explain boats
        explain boat.spec
        apply -f boat.yaml
        get boats
        get boats -o wide
        get bt,sail -o name
        describe boat titan
        get boat titan -o yaml
        patch boat titan --type=merge -p {"spec":{"masts":"two"}}
        patch boat titan --type=merge -p {"spec":{"masts":99}}
        patch boat titan --type=merge -p {"spec":{"masts":3}}
        patch boat titan --subresource=status --type=merge -p {"status":{"afloat":true}}
        get boats
        scale boat titan --replicas=2
        get boats --field-selector=spec.color=red
        get boats --sort-by=.spec.masts
        label boats --all seen=yes
        apply -f boat-invalid.yaml
        # The sandbox names the unknown field without the whole object.
        apply -f boat-unknown.yaml
        apply -f boat-unknown.yaml --validate=false
        diff -f boat.yaml
        apply --server-side -f boat.yaml
        delete boats --all
        delete crd boats.sea.example.com
        get boats
    """,
    "mistakes": """
        apply -f invalid.yaml
        create deployment Web --image=nginx
        create deployment web
        create service clusterip web --tcp=99999
        run web --image=
        create -f unknown-field.yaml
        apply -f unknown-kind.yaml
        create namespace default
        delete namespace kube-none
        delete namespace kube-system --dry-run=server
        patch deployment none -p {}
        scale deployment none --replicas=1
        rollout status deployment/none
        create configmap a --from-literal=a=1
        create configmap a --from-literal=a=1
        label configmap a bad=*
        annotate configmap a /=x
        patch configmap a -p {"metadata":{"name":"b"}}
        patch configmap a -p {"immutable":true}
        patch configmap a -p {"data":{"a":"2"}}
        create secret generic s --from-literal=a=1 --type=kubernetes.io/tls
        expose configmap a
        autoscale configmap a --max=2
        create quota q --hard=pods=1
        create priorityclass none --value=2000000000
        create poddisruptionbudget p --selector=a=b --min-available=1 --dry-run=server -o yaml
        create ingress i --rule=example.com/*=web:80 --dry-run=server -o yaml
        create ingress i --rule=x
        wait --for=condition=Ready pod/none --timeout=1s
        wait --for=delete pod/none --timeout=1s
        logs none
        exec none -- ls
        cp none:/a /tmp/b
        port-forward none 80
        attach none
        get pods --field-selector=spec.none=1
        # The sandbox names the place of the mistake.
        get pods -l a=b=c
        get pods --sort-by=.none
        get configmaps --chunk-size=1
        get configmaps -o jsonpath={.items[*].metadata.name}
        get configmap a --subresource=status
        replace -f config.yaml
        replace --force -f config.yaml
        delete configmaps --all
    """,
}
