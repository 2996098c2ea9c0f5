"""The files for clusters are what Ray and KubeRay read, as far as that can be told without them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

DEPLOY = Path(__file__).parents[2] / "deploy"


def read(name: str) -> Any:
    return YAML(typ="safe").load(DEPLOY / name)


def test_ray_up_fits_rays_schema() -> None:
    ray = pytest.importorskip("ray", reason="needs pip install 'whichsense[cluster]'")
    jsonschema = pytest.importorskip("jsonschema")
    folder = Path(ray.__file__).parent / "autoscaler"
    schema = json.loads((folder / "ray-schema.json").read_text(encoding="utf-8"))
    config = read("ray-up.yaml")
    jsonschema.validate(config, schema)
    kinds = config["available_node_types"]
    assert config["head_node_type"] in kinds
    assert kinds["worker"]["max_workers"] <= config["max_workers"]


def test_kuberay_is_a_ray_cluster() -> None:
    config = read("kuberay.yaml")
    assert (config["apiVersion"], config["kind"]) == ("ray.io/v1", "RayCluster")
    spec = config["spec"]
    assert set(spec) == {"headGroupSpec", "workerGroupSpecs"}
    for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
        assert all(isinstance(value, str) for value in group["rayStartParams"].values())
        pod = group["template"]["spec"]
        volumes = {volume["name"] for volume in pod["volumes"]}
        for container in pod["containers"]:
            assert {"name", "image", "resources", "volumeMounts"} <= set(container)
            assert container["resources"]["requests"] == container["resources"]["limits"]
            mounts = {mount["name"] for mount in container["volumeMounts"]}
            assert mounts <= volumes
    for group in spec["workerGroupSpecs"]:
        assert group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]
